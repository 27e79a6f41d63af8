import { isIPv4, isIPv6 } from "node:net";
import {
  addressBytes,
  addressWords,
  bytesText,
  ipv4Number,
  ipv4Text,
  parseAddress,
  parseAddressLeniently,
  wordsText,
} from "@fairlead/base";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import ipaddr from "ipaddr.js";
import { describe, expect, test } from "vitest";

describe("strict", () => {
  test.each([
    ["10.0.0.1", { family: "IPv4", text: "10.0.0.1", mapped: false }],
    ["FD00:0:0:0::01", { family: "IPv6", text: "fd00::1", mapped: false }],
    ["::ffff:10.0.0.1", { family: "IPv4", text: "10.0.0.1", mapped: true }],
    ["::ffff:a00:1", { family: "IPv4", text: "10.0.0.1", mapped: true }],
    ["::1.2.3.4", { family: "IPv6", text: "::102:304", mapped: false }],
  ])("%s is %o", (text, address) => {
    expect(parseAddress(text)).toEqual(address);
  });

  test.each([
    "",
    "10.0.0.01",
    "10.1",
    "0x0a.0.0.1",
    "10.0.0.256",
    "10.0.0.1 ",
    "10.0.0.1.2",
    "fe80::1%eth0",
    "1::2::3",
    ":",
    "::ffff:010.0.0.1",
    "10.0.0.1/8",
    "a".repeat(99),
  ])("%j is not an address", (text) => {
    expect(parseAddress(text)).toBeUndefined();
  });
});

describe("lenient", () => {
  test.each([
    ["010.000.0.1", { family: "IPv4", text: "10.0.0.1" }],
    ["::ffff:010.0.0.1", { family: "IPv4", text: "10.0.0.1" }],
    ["::FFFF:a00:1", { family: "IPv4", text: "10.0.0.1" }],
    ["2001:DB8:0:0:0:0:0:1", { family: "IPv6", text: "2001:db8::1" }],
    ["::010.0.0.1", { family: "IPv6", text: "::a00:1" }],
  ])("%s is %o", (text, address) => {
    expect(parseAddressLeniently(text)).toEqual(address);
  });

  test.each(["", "10.1", "10..0.1", "10.0.0.256", "10.0.0.-1", "fe80::1%1", "::1.2.3", "1::2::3"])(
    "%j is not an address",
    (text) => {
      expect(parseAddressLeniently(text)).toBeUndefined();
    },
  );
});

const text = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc.string({ unit: fc.constantFrom(..."0123456789abcf.:%/"), maxLength: 24 }),
);

test("strict reading agrees with Node on what is an address", () => {
  fc.assert(
    fc.property(text, (text) => {
      const known = isIPv4(text) || (isIPv6(text) && !text.includes("%"));
      expect(parseAddress(text) !== undefined).toBe(known);
    }),
    { numRuns: runs(2_000) },
  );
});

test("what strict reading takes, lenient reading takes as the same", () => {
  fc.assert(
    fc.property(text, (text) => {
      const strict = parseAddress(text);
      if (strict !== undefined)
        expect(parseAddressLeniently(text)).toEqual({ family: strict.family, text: strict.text });
    }),
    { numRuns: runs(2_000) },
  );
});

test("canonical text stays as it is, and words and bytes lead back to it", () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (text) => {
      const address = parseAddress(text);
      if (address === undefined || address.mapped) return;
      expect(parseAddress(address.text)).toEqual(address);
      expect(wordsText(addressWords(text))).toBe(address.text);
      expect(wordsText(addressWords(bytesText(addressBytes(text))))).toBe(address.text);
    }),
    { numRuns: runs(1_000) },
  );
});

test("bytes are those of ipaddr.js", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.ipV4(),
        fc.ipV6().filter((text) => !text.includes(".")),
      ),
      (text) => {
        expect([...addressBytes(text)]).toEqual(ipaddr.parse(text).toByteArray());
      },
    ),
  );
});

test("bytes are printed as inet_ntop prints them", () => {
  expect(bytesText(addressBytes("::ffff:10.0.0.1"))).toBe("::ffff:10.0.0.1");
  expect(bytesText(addressBytes("::1.2.3.4"))).toBe("::1.2.3.4");
  expect(bytesText(addressBytes("::1"))).toBe("::1");
  expect(bytesText(addressBytes("fd00:0:0:1::"))).toBe("fd00:0:0:1::");
  expect(bytesText(addressBytes("10.0.0.1"))).toBe("10.0.0.1");
});

test("an IPv4 number is unsigned, and read from any place of a text", () => {
  expect(ipv4Number("255.255.255.255")).toBe(0xffff_ffff);
  expect(ipv4Text(0xffff_ffff)).toBe("255.255.255.255");
  expect(ipv4Number("key/10.0.0.1", 4)).toBe(0x0a00_0001);
});

test("what is not an address is named in the error", () => {
  expect(() => addressWords("10.0.0.300")).toThrow(new RangeError('"10.0.0.300" is not an IP address'));
  expect(() => addressBytes("::g")).toThrow(new RangeError('"::g" is not an IP address'));
});

test("IPv4 is read as ipaddr.js reads it, and nothing else", () => {
  fc.assert(
    fc.property(text, (text) => {
      expect(ipv4Number(text) !== -1).toBe(ipaddr.IPv4.isValidFourPartDecimal(text));
    }),
    { numRuns: runs(1_000) },
  );
});

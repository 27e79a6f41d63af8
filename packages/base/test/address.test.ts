import { isIPv4, isIPv6 } from "node:net";
import {
  addressBytes,
  addressWords,
  bytesText,
  ipv4Number,
  ipv4Text,
  parseAddress,
  parseAddressLeniently,
  parseCIDRLeniently,
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
    ..." 10.0.0.01 10.1 0x0a.0.0.1 10.0.0.256 10.0.0.1.2 fe80::1%eth0 1::2::3 : ::ffff:010.0.0.1 10.0.0.1/8".split(" "),
    "10.0.0.1 ",
    "a".repeat(99),
  ])("%j is not an address", (text) => {
    expect(parseAddress(text)).toBeUndefined();
  });
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

/**
 * What Go's k8s.io/utils/net says: ParseIPSloppy with IPFamilyOf, ParseCIDRSloppy with IPFamilyOfCIDR. "-": refused.
 */
const GO = `
10.0.0.1                       10.0.0.1 4               -
010.001.000.001                10.1.0.1 4               -
0000000000000010.0.0.1         10.0.0.1 4               -
10.0.0.256                     -                        -
1.2.3                          -                        -
1.2.3.4.5                      -                        -
1..2.3                         -                        -
.1.2.3                         -                        -
1.2.3.                         -                        -
::ffff:1.2.3.4                 1.2.3.4 4                -
::FFFF:0102:0304               1.2.3.4 4                -
::1.2.3.4                      ::102:304 6              -
FD00:0:0:0:0:0:0:1             fd00::1 6                -
fd00:0:0:1:0:0:0:1             fd00:0:0:1::1 6          -
1:0:2:3:4:5:6:7                1:0:2:3:4:5:6:7 6        -
2001:db8:0:0:1:0:0:1           2001:db8::1:0:0:1 6      -
fe80::1%eth0                   -                        -
::                             :: 6                     -
0:0:0:0:0:0:0:0                :: 6                     -
1::2::3                        -                        -
64:ff9b::1.2.3.04              64:ff9b::102:304 6       -
1.2.3.4::                      -                        -
1:2:3:4:5:6:7:8                1:2:3:4:5:6:7:8 6        -
1:2:3:4:5:6:7::                1:2:3:4:5:6:7:0 6        -
::1:2:3:4:5:6:7                0:1:2:3:4:5:6:7 6        -
10.0.0.5/8                     -                        10.0.0.0/8 4
010.0.0.5/08                   -                        10.0.0.0/8 4
::ffff:1.2.3.4/120             -                        1.2.3.0/24 4
::ffff:1.2.3.4/96              -                        0.0.0.0/0 4
::ffff:1.2.3.4/64              -                        ::/64 6
fd00::1/64                     -                        fd00::/64 6
fd00::1/129                    -                        -
10.0.0.0/33                    -                        -
10.0.0.0/-1                    -                        -
10.0.0.0/                      -                        -
0.0.0.0/0                      -                        0.0.0.0/0 4
::/0                           -                        ::/0 6
`;

test.each(
  GO.trim()
    .split("\n")
    .map((line) => line.split(/\s{2,}/)),
)("reads %s as Go does", (text = "", ip, cidr) => {
  expect(shown(parseAddressLeniently(text))).toBe(ip);
  expect(shown(parseCIDRLeniently(text))).toBe(cidr);
});

function shown(parsed: { readonly text: string; readonly family: string } | undefined): string {
  return parsed === undefined ? "-" : `${parsed.text} ${parsed.family.slice(3)}`;
}

const REFUSED = ["localhost", "10.0.0.1 ", " 10.0.0.1", "10.0.0.1\n", "127.1", "2130706433", "1e1.0.0.1", "10.0.0.-1"];
test.each(["", "0x7f.0.0.1", ...REFUSED])("%j is not an address", (text) =>
  expect(parseAddressLeniently(text)).toBeUndefined(),
);

test("IPv6 text is that of the URL standard, which compresses as Go does", () => {
  fc.assert(
    fc.property(fc.ipV6(), (text) => {
      const { hostname } = new URL(`http://[${text}]/`);
      const canonical = hostname.slice(1, -1);
      const mapped = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.test(canonical);
      fc.pre(!mapped);
      expect(parseAddressLeniently(text)).toEqual({ family: "IPv6", text: canonical });
    }),
  );
});

test("canonical IPv4 text is given back as it is, whatever zeros stood before", () => {
  fc.assert(
    fc.property(fc.ipV4(), fc.nat(3), (text, zeros) => {
      const padded = text.replaceAll(/\d+/g, (octet) => "0".repeat(zeros) + octet);
      expect(parseAddressLeniently(padded)).toEqual({ family: "IPv4", text });
    }),
  );
});

test("what looks like IPv6 is read if and only if it is", () => {
  const nearly = fc.array(fc.constantFrom("1", "0", "fd00", "ffff", "g", ":", "::", ":"), { maxLength: 17 });
  fc.assert(
    fc.property(nearly, (parts) => {
      const text = parts.join("");
      fc.pre(!/[0-9a-f]{5}/.test(text));
      expect(parseAddressLeniently(text) !== undefined).toBe(isIPv6(text));
    }),
    { numRuns: runs(2000) },
  );
});

test("no text makes the readers throw", () => {
  const nearly = fc.stringMatching(/^[0-9a-f:./%]{0,24}$/);
  fc.assert(
    fc.property(fc.oneof(fc.string(), nearly), (text) => {
      for (const parsed of [parseAddressLeniently(text), parseCIDRLeniently(text)]) {
        if (parsed !== undefined) expect(parsed.text).toMatch(/^[0-9a-f:./]+$/);
      }
    }),
  );
});

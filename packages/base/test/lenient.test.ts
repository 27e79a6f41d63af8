import { isIPv6 } from "node:net";
import { parseAddressLeniently, parseCIDRLeniently } from "@fairlead/base";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect, test } from "vitest";

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

test.each(["", "localhost", "10.0.0.1 ", " 10.0.0.1", "10.0.0.1\n", "0x7f.0.0.1", "127.1", "2130706433", "1e1.0.0.1"])(
  "%j is not an address",
  (text) => expect(parseAddressLeniently(text)).toBeUndefined(),
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

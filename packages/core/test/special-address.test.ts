import { parseAddressLeniently } from "@fairlead/base";
import { expect, test } from "vitest";
import { specialKind } from "../src/decode/special-address.ts";

test.each([
  ["0.0.0.0", "unspecified"],
  ["127.255.0.1", "loopback"],
  ["169.254.169.254", "link-local"],
  ["224.0.0.1", "multicast"],
  ["239.255.255.250", "multicast"],
  ["0.0.0.1", "reserved"],
  ["0.255.255.255", "reserved"],
  ["1.0.0.0", undefined],
  ["223.255.255.255", undefined],
  ["240.0.0.0", "reserved"],
  ["255.255.255.254", "reserved"],
  ["255.255.255.255", "broadcast"],
  ["10.0.0.1", undefined],
  ["169.253.0.1", undefined],
  ["::", "unspecified"],
  ["::1", "loopback"],
  ["fe80::1", "IPv6 link-local"],
  ["febf::1", "IPv6 link-local"],
  ["::ffff:240.0.0.1", "reserved"],
  ["ff02::1", "multicast"],
  ["fec0::1", undefined],
  ["fd00::1", undefined],
  ["ff::1", undefined],
])("%s is %s", (text, kind) => {
  const address = parseAddressLeniently(text);
  expect(address && specialKind(address)).toBe(kind);
});

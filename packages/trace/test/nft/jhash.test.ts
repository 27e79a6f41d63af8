import { addressHex, bytesOf, padded, portHex } from "@fairlead/netfilter/nft";
import { expect, test } from "vitest";
import { jhash } from "../../src/nft/jhash.ts";

const SENDER = addressHex("127.0.0.1");
const PORTS = padded(portHex(53)) + padded(portHex(4000));

/** What Linux made of packets to addresses of lo with `jhash … mod 65536`: the upper half of the hash. */
const KNOWN: readonly (readonly [address: string, of4: number, of12: number, of16: number])[] = [
  ["127.0.3.1", 0x51cb, 0x4a17, 0x3d64],
  ["127.0.3.2", 0xdff6, 0x7c27, 0x98ae],
  ["127.0.3.77", 0x736d, 0xcbc5, 0x524c],
  ["127.0.3.255", 0x444d, 0x25d5, 0x2d6c],
];

test.each(KNOWN)("%s", (address, of4, of12, of16) => {
  const to = addressHex(address);
  expect(jhash(bytesOf(to), 7) >>> 16).toBe(of4);
  expect(jhash(bytesOf(SENDER + to + to), 0) >>> 16).toBe(of12);
  expect(jhash(bytesOf(SENDER + to + PORTS), 0xdeadbeef) >>> 16).toBe(of16);
});

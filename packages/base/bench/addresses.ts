/**
 * Reading 100,000 addresses with each reader, beside what else could read them.
 * Run: pnpm exec node --conditions=@fairlead/source bench/addresses.ts
 */
import { isIP } from "node:net";
import { addressWords, canonicalIPv4Leniently, ipv4Number, parseAddress, parseAddressLeniently } from "@fairlead/base";
import ipaddr from "ipaddr.js";

const COUNT = 100_000;
const IPV4 = Array.from({ length: COUNT }, (_, at) => `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`);
const IPV6 = Array.from(
  { length: COUNT },
  (_, at) => `fd00:144::${(at >> 16).toString(16)}:${(at & 0xffff).toString(16)}`,
);

const readers: Readonly<Record<string, (text: string) => unknown>> = {
  parseAddress,
  parseAddressLeniently,
  addressWords,
  "net.isIP": isIP,
  "ipaddr.js": (text) => ipaddr.parse(text).toByteArray(),
};

/** The median of 15 rounds, nanoseconds for one address. */
function nanoseconds(read: (text: string) => unknown, texts: readonly string[]): number {
  const rounds = Array.from({ length: 15 }, () => {
    const start = performance.now();
    for (const text of texts) read(text);
    return ((performance.now() - start) * 1e6) / texts.length;
  }).sort((a, b) => a - b);
  return Math.round(rounds[7] ?? 0);
}

for (const [name, read] of Object.entries({ ipv4Number, canonicalIPv4Leniently })) {
  console.log(`${name}: ${nanoseconds((text) => read(text), IPV4)} ns`);
}
for (const [name, read] of Object.entries(readers)) {
  console.log(`${name}: IPv4 ${nanoseconds(read, IPV4)} ns, IPv6 ${nanoseconds(read, IPV6)} ns`);
}

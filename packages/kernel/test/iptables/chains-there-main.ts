import { readdirSync } from "node:fs";
import { createChainsThere, createRunner } from "../../src/index.ts";

/**
 * Run in a namespace: what the kernel says of chains before and after nat is written, in one line of JSON.
 * Usage: chains-there-main.ts VARIANT FAMILY
 */
const family = process.argv[3] === "IPv6" ? "IPv6" : "IPv4";
const variant = process.argv[2] === "legacy" ? "legacy" : "nft";
const there = createChainsThere(family, variant);
const all = async () => {
  const [nat, mangle] = [await there.all("nat"), await there.all("mangle")];
  return { nat: nat && [...nat].sort(), mangle: mangle && [...mangle].sort() };
};
const before = await all();
const input =
  "*nat\n:MINE - [0:0]\n:A-NAME-OF-AS-MANY-AS-28-BYTE - [0:0]\n-A MINE -j RETURN\n-A OUTPUT -j MINE\nCOMMIT\n";
const restore = `${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}-restore`;
await createRunner().run([restore, "--noflush", "-w", "5"], { input });
const has = { MINE: await there.has("nat", "MINE"), OTHER: await there.has("nat", "OTHER") };
const elsewhere = await there.has("mangle", "MINE");
const legacyNames = family === "IPv4" ? "/proc/self/net/ip_tables_names" : "/proc/self/net/ip6_tables_names";
const { stdout: loaded } = await createRunner().run(["cat", legacyNames]);
const after = await all();
const descriptors = () => readdirSync("/proc/self/fd").length;
const open = descriptors();
for (let time = 0; time < 5; time++) await all();
const opened = descriptors() - open;
process.stdout.write(JSON.stringify({ before, after, opened, has, elsewhere, loaded: loaded.trim().split("\n") }));

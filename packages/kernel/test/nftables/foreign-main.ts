import { readdirSync, readFileSync } from "node:fs";
import { type NftTable, readTablesFromJson, ruleText } from "@fairlead/netfilter/nft";
import { createRunner, nftTableNames, readNftTables } from "../../src/index.ts";

/**
 * Runs in a namespace of its own: has `nft` and iptables load tables of anybody, and prints what is read by netlink as
 * far as it is known, and what is read from nft's JSON, in the words of one printer.
 */
const golden = new URL("../../../testkit/fixtures/golden/", import.meta.url);
const runner = createRunner();

const SETS = `
table ip strangers {
  set blocked { type ipv4_addr; flags interval; elements = { 10.1.0.0/16, 192.0.2.1-192.0.2.7 } }
  set counted { type ipv4_addr; counter; elements = { 10.2.0.1 } }
  set pairs { type ipv4_addr . inet_service; flags interval; elements = { 10.0.0.0/8 . 80-90 } }
  set interfaces { type iface_index; }
  map others { type ipv4_addr : verdict; elements = { 10.3.0.1 : drop, * : accept } }
  counter c1 { }
  quota q1 { over 10 mbytes }
  limit l1 { rate 10/second }
  map counters { type inet_service : counter; elements = { 80 : "c1" } }
  set marks { typeof meta mark; elements = { 0x7 } }
  chain input { type filter hook input priority 5; policy drop; }
  chain own { }
  chain nat { type nat hook postrouting priority srcnat; }
  chain early { type nat hook prerouting priority -101; }
  chain ingress { type filter hook ingress device lo priority 0; drop; }
}`.replace(/\n {2}chain ingress.*/, "");

/** One by one: a kernel may be made without some of it. */
const RULES = `
input ct state established,related accept
input ct state vmap { invalid : drop, new : continue }
input iifname "lo" accept
input oifname "veth*" counter drop
input ip saddr @blocked drop
input ip saddr @counted drop
input ip saddr . tcp dport @pairs drop
input ip daddr vmap @others
input meta mark @marks accept
input tcp dport { 22, 80, 443 } limit rate 10/second accept comment "some"
input tcp dport 1000-2000 drop
input tcp dport != 1000-2000 drop
input tcp flags & (fin | syn) == syn drop
input meta skuid 1000 drop
input rt classid 5 drop
input ip ttl 1 drop
input log prefix "x" drop
input meta nftrace set 1
input ct mark set 0x5
input meta mark set ct mark
input udp dport 53 queue
input reject with icmp type host-prohibited
input jump own
own fib saddr type local accept
own quota over 10 mbytes drop
own ct count over 5 drop
own tcp dport 80 counter name "c1" accept
own quota name "q1" drop
own limit name "l1" accept
own ip saddr 10.0.0.1 counter name tcp dport map @counters
own meta mark set 0x4000
own counter name tcp dport map { 443 : "c1" } accept
nat ip saddr 10.0.0.0/8 ip daddr != 10.0.0.0/8 masquerade fully-random
nat ip saddr 10.9.0.1 snat to 192.0.2.9
early tcp dport 8080 redirect to :80
`;

const IPTABLES = `*filter
:OTHERS - [0:0]
-A INPUT -p tcp -m tcp --dport 22 -m conntrack --ctstate NEW -m comment --comment "x" -j OTHERS
-A OTHERS -m limit --limit 5/min -j LOG --log-prefix "drop "
-A OTHERS -s 10.0.0.0/8 -j DROP
COMMIT
*nat
-A POSTROUTING -s 10.244.0.0/16 ! -d 10.244.0.0/16 -j MASQUERADE --random-fully
-A PREROUTING -p udp -m udp --dport 53 -j DNAT --to-destination 10.0.0.3:5353
COMMIT
`;

const loads = new Map<string, () => Promise<unknown>>(
  readdirSync(golden)
    .filter((file) => file.endsWith(".nft"))
    .map((name) => [name, () => nft(readFileSync(new URL(name, golden), "utf8"))]),
);
const refused: string[] = [];
loads.set("strangers", async () => {
  await nft(SETS);
  for (const rule of RULES.trim().split("\n")) {
    await nft(`add rule ip strangers ${rule}`).catch(() => refused.push(rule));
  }
});
loads.set("iptables", () => runner.run(["iptables-nft-restore"], { input: IPTABLES }));

const seen: Record<string, unknown> = {};
for (const [name, load] of loads) {
  await runner.run(["nft", "flush", "ruleset"]);
  await load();
  const netlink = [...(await readNftTables("IPv4", () => true)), ...(await readNftTables("IPv6", () => true))];
  const { stdout } = await runner.run(["nft", "-j", "list", "ruleset"]);
  const json = readTablesFromJson(JSON.parse(stdout));
  seen[name] = { names: await nftTableNames(), netlink: netlink.map(said), json: json.map(said) };
}
process.stdout.write(JSON.stringify({ seen, refused }));

async function nft(input: string): Promise<void> {
  await runner.run(["nft", "-f", "-"], { input });
}

/** What a table says, part by part; elements come in any order. */
function said({ family, name, chains, sets }: NftTable) {
  const sorted = new Map(
    Array.from(sets, ([set, { elements, ...facts }]) => {
      // An interval that ends where the first address is stands for nothing; nft writes it into some sets.
      const kept = [...elements].filter(([key, { intervalEnd }]) => !intervalEnd || !/^0+( end)?$/.test(key));
      return [set, { ...facts, elements: new Map(kept.sort(([one], [other]) => (one < other ? -1 : 1))) }] as const;
    }),
  );
  const named = [...sorted.values()].filter(({ flags }) => !flags.includes("anonymous"));
  return {
    name: `${family} ${name}`,
    chains: Array.from(chains.values(), ({ name: chain, base, rules }) => ({
      chain,
      base,
      rules: rules.map((rule) => ruleText(rule, { family, sets: sorted })),
    })),
    sets: named.map(({ name: set, elements }) => [set, [...elements.keys()]]).sort(),
  };
}

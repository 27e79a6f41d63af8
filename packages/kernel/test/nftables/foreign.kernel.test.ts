import { readdirSync, readFileSync } from "node:fs";
import { type Expression, type NftRule, type NftTable, readTables, ruleText, tableText } from "@fairlead/netfilter/nft";
import { beforeAll, expect, test } from "vitest";
import { isNftTableThere, nftTableNames, openNftables, readNftTables } from "../../src/index.ts";
import { inside, insideSuite, insideTest } from "../kernel-test.ts";

/** kube-proxy's tables, by the name of their recording. */
const golden = new URL("../../../testkit/fixtures/golden/", import.meta.url);
const RECORDED = new Map(
  readdirSync(golden)
    .filter((file) => file.endsWith(".nft"))
    .map((name) => [name, readFileSync(new URL(name, golden), "utf8")]),
);

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

type Said = ReturnType<typeof said>;

/** Tables of anybody: what is read by netlink as far as it is known, and from nft's text, in one printer's words. */
interface Seen {
  readonly names: unknown;
  readonly netlink: readonly Said[];
  readonly text: readonly Said[];
}

async function see(text: readonly NftTable[]): Promise<Seen> {
  const netlink = [...(await readNftTables("IPv4", () => true)), ...(await readNftTables("IPv6", () => true))];
  return { names: await nftTableNames(), netlink: netlink.map(said), text: text.map(said) };
}

insideSuite("anybody's tables by netlink", () => {
  const seen: Record<string, Seen> = {};
  const listed: { name: string; netlink: string[]; text: string[] }[] = [];

  beforeAll(() =>
    inside(async ({ runner }) => {
      const client = await openNftables();
      const nft = (input: string) => runner.run(["nft", "-f", "-"], { input });
      const list = async () => readTables((await runner.run(["nft", "list", "ruleset"])).stdout);
      for (const [name, recorded] of RECORDED) {
        await nft(`flush ruleset\n${recorded}`);
        const text = await list();
        const netlink = await Promise.all(text.map(({ family, name }) => client.table(family, name)));
        listed.push({
          name,
          netlink: netlink.flatMap((table) => (table === undefined ? [] : textLines(table))),
          text: text.flatMap(textLines),
        });
        seen[name] = await see(text);
      }
      await client.close();
      await nft(`flush ruleset\n${SETS}`);
      for (const rule of RULES.trim().split("\n")) await nft(`add rule ip strangers ${rule}`).catch(() => {});
      seen["strangers"] = await see(await list());
      await nft("flush ruleset");
      await runner.run(["iptables-nft-restore"], { input: IPTABLES });
      seen["iptables"] = await see(await list());
    }),
  );

  test("netlink and nft's text say the same of kube-proxy's tables", () => {
    expect(listed).not.toEqual([]);
    for (const { name, netlink, text } of listed) {
      expect(text, name).toEqual(netlink);
    }
  });

  const rulesOf = (which: "netlink" | "text", of: string) =>
    seen[of]?.[which].flatMap(({ chains }) => chains.flatMap(({ rules }) => rules)) ?? [];

  test("are those of nft's text: kube-proxy's word for word", () => {
    const names = Object.keys(seen).filter((name) => name.endsWith(".nft"));
    expect(names.length).toBeGreaterThanOrEqual(20);
    for (const name of names) expect(seen[name]?.netlink, name).toEqual(seen[name]?.text);
  });

  test.each(["strangers", "iptables"])("%s: as far as the text is known, and not less", (name) => {
    const { netlink = [], text = [] } = seen[name] ?? {};
    const frame = ({ chains, ...table }: Said) => ({
      ...table,
      chains: chains.map(({ rules, ...chain }) => ({ ...chain, rules: rules.length })),
    });
    expect(netlink.map(frame)).toEqual(text.map(frame));
    const inText = rulesOf("text", name);
    expect(inText.length).toBeGreaterThan(4);
    for (const [at, rule] of rulesOf("netlink", name).entries()) {
      // What stands behind a step that one of them does not know is not compared; nft has words for iptables' matches.
      const [byText = "", byNetlink = ""] = [inText[at]?.split(UNKNOWN)[0], rule.split("[")[0]].map((one) =>
        one?.trim(),
      );
      const length = Math.min(byText.length, byNetlink.length);
      expect(byNetlink.slice(0, length), rule).toBe(byText.slice(0, length));
    }
  });

  test("what is not known of strangers' rules is named, and a verdict behind it is there", () => {
    const rules = rulesOf("netlink", "strangers");
    for (const rule of [
      'meta l4proto tcp th dport { 22, 80, 443 } [ limit ] accept comment "some"',
      "meta l4proto tcp [ range ] drop",
      "[ rt ] 0x05000000 drop",
      "[ log ] drop",
      "[ quota ] drop",
      'meta l4proto tcp th dport 80 counter name "c1" accept',
      'quota name "q1" drop',
      'limit name "l1" accept',
      "ip saddr 10.0.0.1 meta l4proto tcp counter name th dport map @counters",
      'meta l4proto tcp counter name th dport map { 443 : "c1" } accept',
      "meta mark set 0x00004000",
      "ip saddr 10.9.0.1 [ nat ]",
      "meta l4proto tcp ip saddr . th dport @pairs drop",
    ]) {
      expect(rules).toContain(rule);
    }
    expect(rulesOf("netlink", "iptables")).toContain("[ limit ] counter packets 0 bytes 0 [ target LOG ]");
  });

  test("sets with more to them than keys are left out, others are there", () => {
    expect(JSON.stringify(seen["strangers"]?.netlink[0]?.sets)).toBe(
      '[["blocked",["0a010000","0a020000 end","c0000201","c0000208 end"]],["counted",["0a020001"]],["counters",["0050"]],["marks",["07000000"]]]',
    );
  });

  test("names of tables, those of iptables among them", () => {
    expect(seen["iptables"]?.names).toEqual([
      { family: "ip", name: "filter" },
      { family: "ip", name: "nat" },
    ]);
    expect(seen["25-dual-clusterip.nft"]?.names).toEqual([
      { family: "ip", name: "kube-proxy" },
      { family: "ip6", name: "kube-proxy" },
    ]);
  });
});

insideTest("nf_tables knows a table by its family and its whole name", async ({ runner }) => {
  const ask = async () => [
    await isNftTableThere("IPv4", "kube-proxy"),
    await isNftTableThere("IPv6", "kube-proxy"),
    await isNftTableThere("IPv4", "kube"),
  ];
  expect(await ask()).toEqual([false, false, false]);
  await runner.run(["nft", "add", "table", "ip", "kube-proxy"]);
  await runner.run(["nft", "add", "table", "inet", "kube"]);
  expect(await ask()).toEqual([true, false, false]);
});

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
      rules: rules.map((rule) => ruleText(marked(rule), { family, sets: sorted })),
    })),
    sets: named.map(({ name: set, elements }) => [set, [...elements.keys()]]).sort(),
  };
}

const UNKNOWN = "?!";

/** By netlink what is not known stands in brackets; of the text its words would. */
function marked(rule: NftRule): NftRule {
  const mark = (one: Expression): Expression =>
    one.kind === "unknown" && !one.text.startsWith("[") ? { ...one, text: UNKNOWN } : one;
  return { ...rule, expressions: rule.expressions.map(mark) };
}

/** Elements come in any order. */
function textLines(table: NftTable): string[] {
  const sets = Array.from(table.sets, ([name, set]) => {
    const elements = [...set.elements].sort(([one], [other]) => (one < other ? -1 : 1));
    return [name, { ...set, elements: new Map(elements) }] as const;
  });
  return tableText({ ...table, sets: new Map(sets) }).split("\n");
}

import { addressHex, type Expression, statements } from "@fairlead/netfilter/nft";
import { describe, expect, test } from "vitest";
import { type Environment, explore, type Packet, trace } from "../../src/index.ts";
import { HOST, ownPacket, packet } from "../rule-set.ts";
import { tableOf } from "./tables.ts";

type Packets = readonly Partial<Packet>[];

/** A match, packets that meet it and packets that do not. Default: at the hook that everything passes that arrives. */
const CASES: [match: string, yes: Packets, no: Packets, chain?: string][] = [
  ["ip saddr 192.0.2.0/24", [{}], [{ source: "192.0.3.9" }]],
  ["ip daddr 10.0.0.0/9", [{}, { destination: "10.127.0.1" }], [{ destination: "10.128.0.1" }]],
  ["th dport < 81", [{ dport: 80 }], [{ dport: 81 }, { dport: 443 }]],
  ["th dport <= 80", [{ dport: 80 }, { dport: 1 }], [{ dport: 443 }]],
  ["th dport > 80", [{ dport: 443 }], [{ dport: 80 }]],
  ["th dport >= 443", [{ dport: 443 }], [{ dport: 80 }]],
  ["th dport != 80", [{ dport: 443 }], [{ dport: 80 }]],
  ["meta l4proto udp", [{ protocol: "udp" }], [{ protocol: "tcp" }]],
  ['iifname "eth0"', [{ inInterface: "eth0" }], [{ inInterface: "eth01" }, { inInterface: "eth" }]],
  ['iifname "cali*"', [{ inInterface: "cali7" }, { inInterface: "cali" }], [{ inInterface: "cal" }]],
  ['oifname "eth0"', [], [{}]],
  ['oifname "cali1"', [{ destination: "10.144.1.5" }], [{ destination: "10.0.0.1" }], "forward filter"],
  ["meta mark & 0x4000 == 0x4000", [{ mark: 0x4001 }], [{ mark: 0x3fff }, {}]],
  ["tcp flags syn / fin,syn,rst,ack", [{}], []],
  ["tcp flags != syn / fin,syn,rst,ack", [], [{}]],
  ["ct state new", [{}], [{ state: "ESTABLISHED" }]],
  ["ct state invalid", [{ state: "INVALID" }], [{}, { state: "RELATED" }]],
  ["ct state new", [], [{}], "prerouting filter -300"],
  [
    "ct status dnat",
    [{ state: "ESTABLISHED", dnat: { address: "10.144.1.5", port: 80 } }],
    [{}, { state: "INVALID" }, { state: "ESTABLISHED" }],
    "forward filter",
  ],
  [
    "fib daddr type local",
    [{ destination: "10.201.0.10" }, { destination: "127.0.0.1" }],
    [{}, { destination: "255.255.255.255" }, { destination: "224.0.0.1" }],
  ],
  ["ip daddr { 10.0.0.1 }", [{}], [{ destination: "10.0.0.2" }]],
  ["ip saddr != { 192.0.2.9 }", [{ source: "192.0.2.8" }], [{}]],
  [
    "ip saddr { 192.0.2.0/24, 198.51.100.7-198.51.100.7 }",
    [{ source: "192.0.2.0" }, { source: "192.0.2.255" }, { source: "198.51.100.7" }],
    [{ source: "192.0.1.255" }, { source: "192.0.3.0" }, { source: "198.51.100.8" }],
  ],
  ["ip daddr . meta l4proto . th dport { 10.0.0.1 . tcp . 80 }", [{}], [{ protocol: "icmp" }]],
  ["meta l4proto 47", [{ protocol: "47" }], [{}]],
  ["counter", [{}], []],
];

describe.each<(typeof CASES)[number]>(CASES)("%s", (match, yes, no, chain = "prerouting filter 0") => {
  const table = tableOf({ [chain]: [`${match} drop`] });
  const verdictOf = (fields: Partial<Packet>) => {
    const { sport, dport, ...sent } = packet(fields);
    const portless = sent.protocol === "icmp" || sent.protocol === "47";
    return verdicts(trace({ nftables: [table] }, { ...sent, ...(!portless && { sport, dport }) } as Packet, HOST));
  };

  test.each(yes)("matches %j", (fields) => expect(verdictOf(fields)).toEqual(["drop"]));

  test.each(no)("does not match %j", (fields) => expect(verdictOf(fields)).toEqual(["accept"]));
});

test("a constant is compared", () => {
  const match: readonly Expression[] = [
    { kind: "immediate", to: 4, value: "00500000" },
    { kind: "cmp", operator: "==", from: 4, value: "0050" },
    ...statements.verdict({ kind: "drop" }),
  ];
  expect(verdicts(trace({ nftables: [tableOf({ "forward filter": [match] })] }, packet(), HOST))).toEqual(["drop"]);
});

describe("what changes the packet", () => {
  const through = (chain: string, rule: string, sent = packet(), environment: Environment = HOST) => {
    const [outcome, ...more] = trace({ nftables: [tableOf({ [chain]: [rule] })] }, sent, environment);
    expect(more).toEqual([]);
    return outcome;
  };

  test("a mark is set, and one that is there changed", () => {
    const marked = (rule: string, mark: number) => through("prerouting filter", rule, packet({ mark }))?.mark;
    expect(marked("meta mark set meta mark | 0x4000", 1)).toBe(0x4001);
    expect(marked("meta mark set meta mark ^ 0x4000", 0x4001)).toBe(1);
  });

  test("dnat translates and ends the chain", () => {
    const outcome = through("prerouting nat", "dnat to 10.144.1.5:8080 drop");
    expect(outcome).toMatchObject({ verdict: "accept", translated: true, path: "forward", outInterface: "cali1" });
    expect(outcome?.destination).toEqual({ address: "10.144.1.5", port: 8080 });
  });

  test("masquerade takes the node's address", () => {
    const outcome = through("postrouting nat", "masquerade");
    expect(outcome).toMatchObject({ masqueraded: true, source: { address: "10.201.0.10", port: 40_000 } });
  });

  test.each(["tcp", "udp"])("%s is refused by ICMP", (protocol) => {
    const refused = { verdict: "reject", rejectWith: "icmp-port-unreachable", table: "ip t" };
    expect(through("forward filter", "reject", packet({ protocol }))).toMatchObject(refused);
  });

  test("there is no reset of what is not TCP: it is dropped", () => {
    const reset = "reject with tcp reset";
    expect(through("forward filter", reset)).toMatchObject({ verdict: "reject", rejectWith: "tcp-reset" });
    expect(through("forward filter", reset, packet({ protocol: "udp" }))?.verdict).toBe("drop");
  });

  test.each([
    ["prerouting filter", "dnat to 10.144.1.5:80", "dnat is valid in chains of type nat only"],
    ["postrouting nat", "dnat to 10.144.1.5:80", "dnat is valid at PREROUTING, OUTPUT only"],
    ["output nat", "masquerade", "masquerade is valid at POSTROUTING only"],
    ["postrouting filter", "reject", "reject is valid at PREROUTING, INPUT, FORWARD, OUTPUT only"],
  ])("in %s the kernel would not load %s", (chain, rule, problem) => {
    expect(() => through(chain, rule, chain.startsWith("output") ? ownPacket() : packet())).toThrow(problem);
  });
});

describe("what packets put into sets", () => {
  const seen = (more = "", elements = "") =>
    `set seen {\ntype ipv4_addr\nflags dynamic,timeout\ntimeout 10s\n${more}\n${elements && `elements = { ${elements} }`}\n}`;
  const key = addressHex("192.0.2.9");
  const remember = "update @seen { ip saddr }";
  const known = "ip saddr @seen drop";
  const through = (rules: readonly string[], set = seen(), environment: Environment = HOST) =>
    trace({ nftables: [tableOf({ "prerouting filter": rules }, [set])] }, packet(), environment);

  test("is reported, and found by later rules and packets", () => {
    const [outcome] = through([remember]);
    expect(outcome?.remembered).toEqual([{ table: "ip t", set: "seen", key, timeout: 10_000 }]);
    expect(verdicts(through([known]))).toEqual(["accept"]);
    expect(verdicts(through([known], seen(), { ...HOST, remembered: outcome?.remembered ?? [] }))).toEqual(["drop"]);
    expect(verdicts(through([remember, known]))).toEqual(["drop"]);
  });

  test("keeps the value that a map has, and its time is reported", () => {
    const map =
      "map seen {\ntype ipv4_addr : ipv4_addr\nflags dynamic,timeout\nelements = { 192.0.2.9 : 192.0.2.1 }\n}";
    const [outcome] = through(["add @seen { ip saddr timeout 5s : ip daddr }"], map);
    const value = addressHex("192.0.2.1");
    expect(outcome?.remembered).toEqual([{ table: "ip t", set: "seen", key, value, timeout: 5000 }]);
  });

  test("ends the rule where there is no room, but for what is there", () => {
    const ends = (element: string) => through([`${remember} drop`], seen("size 1", element));
    expect(ends("192.0.2.200")).toMatchObject([{ verdict: "accept", remembered: [] }]);
    expect(ends("192.0.2.9")).toMatchObject([{ verdict: "drop" }]);
  });

  test("may be taken out again", () => {
    expect(verdicts(through(["delete @seen { ip saddr }", known], seen("", "192.0.2.9")))).toEqual(["accept"]);
  });
});

describe("hashes", () => {
  const hash: Expression = { kind: "hash", from: 0, length: 4, modulus: 4, seed: 7, to: 1 };

  test("of one sender are one number, and those of many all numbers alike", () => {
    const rule: readonly Expression[] = [
      statements.load("ip", "saddr", 0),
      hash,
      { kind: "lookup", set: "m", from: 1, to: 2 },
      { kind: "meta", key: "mark", from: 2 },
    ];
    const numbers = "map m {\ntype integer : mark\nelements = { 0 : 1, 1 : 2, 2 : 3, 3 : 4 }\n}";
    const tables = { nftables: [tableOf({ "prerouting filter": [rule] }, [numbers])] };
    const counts = new Map<number, number>();
    for (let last = 0; last < 256; last += 1) {
      const outcomes = trace(tables, packet({ source: `192.0.2.${last}` }), HOST);
      expect(outcomes).toHaveLength(1);
      const mark = outcomes[0]?.mark ?? 0;
      counts.set(mark, (counts.get(mark) ?? 0) + 1);
    }
    expect([...counts.keys()].sort()).toEqual([1, 2, 3, 4]);
    for (const count of counts.values()) expect(count).toBeGreaterThan(40);
  });

  test("of what is not known may be any number", () => {
    const rule: readonly Expression[] = [
      { kind: "payload", base: "network", offset: 4, length: 4, to: 0 },
      hash,
      { kind: "meta", key: "mark", from: 1 },
    ];
    const outcomes = trace({ nftables: [tableOf({ "prerouting filter": [rule] })] }, packet(), HOST);
    const shares = outcomes.map(({ mark, probability }) => [mark, probability]).sort();
    expect(shares).toEqual([0, 1, 2, 3].map((mark) => [mark, 0.25]));
  });
});

const through = (rule: string, sent = packet(), sets: readonly string[] = []) =>
  explore({ nftables: [tableOf({ "prerouting filter": [rule] }, sets)] }, sent, HOST);
const ends = ({ outcomes }: ReturnType<typeof through>) => verdicts(outcomes).sort();

describe("a rule that puts connections into a flowtable", () => {
  const established = packet({ state: "ESTABLISHED" });

  test("lets the packet on, whether the flowtable takes the connection or not", () => {
    const found = through("flow add @ft", established);
    expect(ends(found)).toEqual(["accept"]);
    expect(found.undecided).toEqual([]);
  });

  test("ends where the connection is not established, or has another protocol", () => {
    expect(ends(through("flow add @ft drop"))).toEqual(["accept"]);
    expect(ends(through("flow add @ft drop", { ...established, protocol: "sctp" }))).toEqual(["accept"]);
  });

  test("may end for an established connection: both ways are there", () => {
    expect(ends(through("flow add @ft drop", established))).toEqual(["accept", "drop"]);
  });
});

describe("named objects", () => {
  test.each(["counter name", "ct helper set", "ct timeout set", "meta secmark set", "ct expectation set"])(
    "%s lets the packet on",
    (words) => {
      const found = through(`${words} "o" drop`);
      expect(ends(found)).toEqual(["drop"]);
      expect(found.undecided).toEqual([]);
    },
  );

  test("an expectation ends the rule where the connection is known already (nft_ct_expect_obj_eval)", () => {
    expect(ends(through('ct expectation set "o" drop', packet({ state: "ESTABLISHED" })))).toEqual(["accept"]);
  });

  test.each(["quota", "limit"])("whether a %s is used up is not known: both ways are there", (object) => {
    expect(ends(through(`${object} name "o" drop`))).toEqual(["accept", "drop"]);
  });

  test("synproxy answers TCP itself, and leaves the rest", () => {
    expect(through('synproxy name "o" drop').undecided).toHaveLength(1);
    expect(ends(through('synproxy name "o" drop', packet({ protocol: "udp" })))).toEqual(["accept"]);
  });

  test("a map of objects ends the rule where it has none for the packet", () => {
    const map = (address: string) => [`map m {\ntype ipv4_addr : counter\nelements = { ${address} : "o" }\n}`];
    const rule = "counter name ip saddr map @m drop";
    expect(ends(through(rule, packet(), map("192.0.2.9")))).toEqual(["drop"]);
    expect(ends(through(rule, packet(), map("192.0.2.10")))).toEqual(["accept"]);
    expect(through(rule).undecided).toHaveLength(1);
  });
});

function verdicts(outcomes: readonly { readonly verdict: string }[]): string[] {
  return outcomes.map(({ verdict }) => verdict);
}

import {
  addressHex,
  type Expression,
  hexOf,
  hostHex,
  type NamedObject,
  type NftSet,
  portHex,
  statements,
} from "@fairlead/netfilter/nft";
import { describe, expect, test } from "vitest";
import { type Environment, explore, type Packet, trace } from "../../src/index.ts";
import { HOST, ownPacket, packet } from "../rule-set.ts";
import { intervals, setOf, tableOf } from "./tables.ts";

const { addressIn, addressTypeIs, hasMark, interfaceIs, load, lookUp, protocolIs, verdict } = statements;
const drop = verdict({ kind: "drop" });

interface Case {
  readonly name: string;
  /** Expressions that match the packets of `yes` and not those of `no`. */
  readonly match: readonly Expression[];
  readonly yes: readonly Partial<Packet>[];
  readonly no: readonly Partial<Packet>[];
  readonly sets?: readonly NftSet[];
  /** Default: the hook that everything passes that arrives. */
  readonly chain?: string;
}

const compare = (operator: "<" | "<=" | ">" | ">=" | "!=", port: number): readonly Expression[] => [
  load("ip", "dport", 0),
  { kind: "cmp", operator, from: 0, value: portHex(port) },
];

const firstPacket = statements.pastTheFirst.map((one) =>
  one.kind === "cmp" ? { ...one, operator: "==" as const } : one,
);

const cases: readonly Case[] = [
  {
    name: "payload: the source address",
    match: addressIn("ip", "saddr", "192.0.2.0/24"),
    yes: [{}],
    no: [{ source: "192.0.3.9" }],
  },
  {
    name: "bitwise: a prefix within a byte",
    match: addressIn("ip", "daddr", "10.0.0.0/9"),
    yes: [{}, { destination: "10.127.0.1" }],
    no: [{ destination: "10.128.0.1" }],
  },
  { name: "cmp: <", match: compare("<", 81), yes: [{ dport: 80 }], no: [{ dport: 81 }, { dport: 443 }] },
  { name: "cmp: <=", match: compare("<=", 80), yes: [{ dport: 80 }, { dport: 1 }], no: [{ dport: 443 }] },
  { name: "cmp: >", match: compare(">", 80), yes: [{ dport: 443 }], no: [{ dport: 80 }] },
  { name: "cmp: >=", match: compare(">=", 443), yes: [{ dport: 443 }], no: [{ dport: 80 }] },
  { name: "cmp: !=", match: compare("!=", 80), yes: [{ dport: 443 }], no: [{ dport: 80 }] },
  { name: "meta: the protocol", match: protocolIs("udp"), yes: [{ protocol: "udp" }], no: [{ protocol: "tcp" }] },
  {
    name: "meta: the incoming interface",
    match: interfaceIs("iifname", "eth0"),
    yes: [{ inInterface: "eth0" }],
    no: [{ inInterface: "eth01" }, { inInterface: "eth" }],
  },
  {
    name: "meta: interfaces that begin so",
    match: interfaceIs("iifname", "cali*"),
    yes: [{ inInterface: "cali7" }, { inInterface: "cali" }],
    no: [{ inInterface: "cal" }],
  },
  {
    name: "meta: no outgoing interface before routing",
    match: interfaceIs("oifname", "eth0"),
    yes: [],
    no: [{}],
  },
  {
    name: "meta: the outgoing interface",
    match: interfaceIs("oifname", "cali1"),
    chain: "forward filter",
    yes: [{ destination: "10.144.1.5" }],
    no: [{ destination: "10.0.0.1" }],
  },
  { name: "meta: the mark", match: hasMark(0x4000), yes: [{ mark: 0x4001 }], no: [{ mark: 0x3fff }, {}] },
  {
    name: "payload: the flags of TCP's first packet",
    match: firstPacket,
    yes: [{}],
    no: [],
  },
  { name: "payload: the flags of its others", match: statements.pastTheFirst, yes: [], no: [{}] },
  { name: "ct: a new connection", match: statements.newConnection, yes: [{}], no: [{ state: "ESTABLISHED" }] },
  {
    name: "ct: what belongs to none",
    match: statements.invalidPacket,
    yes: [{ state: "INVALID" }],
    no: [{}, { state: "RELATED" }],
  },
  {
    name: "ct: before connection tracking nothing is new",
    match: statements.newConnection,
    chain: "prerouting filter -300",
    yes: [],
    no: [{}],
  },
  {
    name: "ct: a translated connection",
    match: statements.translatedConnection,
    chain: "forward filter",
    yes: [{ state: "ESTABLISHED", dnat: { address: "10.144.1.5", port: 80 } }],
    no: [{}, { state: "INVALID" }, { state: "ESTABLISHED" }],
  },
  {
    name: "fib: the host's own address",
    match: addressTypeIs("daddr", "local"),
    yes: [{ destination: "10.201.0.10" }, { destination: "127.0.0.1" }],
    no: [{}, { destination: "255.255.255.255" }, { destination: "224.0.0.1" }],
  },
  {
    name: "lookup: a set",
    match: lookUp("ip", ["daddr"], "s"),
    sets: [setOf("s", ["ipv4_addr"], [addressHex("10.0.0.1")])],
    yes: [{}],
    no: [{ destination: "10.0.0.2" }],
  },
  {
    name: "lookup: not in a set",
    match: [load("ip", "saddr", 0), { kind: "lookup", set: "s", from: 0, inverted: true }],
    sets: [setOf("s", ["ipv4_addr"], [addressHex("192.0.2.9")])],
    yes: [{ source: "192.0.2.8" }],
    no: [{}],
  },
  {
    name: "lookup: intervals",
    match: lookUp("ip", ["saddr"], "s"),
    sets: [
      intervals("s", "ipv4_addr", [
        [addressHex("192.0.2.0"), addressHex("192.0.3.0")],
        [addressHex("198.51.100.7"), addressHex("198.51.100.8")],
      ]),
    ],
    yes: [{ source: "192.0.2.0" }, { source: "192.0.2.255" }, { source: "198.51.100.7" }],
    no: [{ source: "192.0.1.255" }, { source: "192.0.3.0" }, { source: "198.51.100.8" }],
  },
  {
    name: "lookup: what has no port is in no set of ports",
    match: lookUp("ip", ["daddr", "l4proto", "dport"], "s"),
    sets: [setOf("s", ["ipv4_addr", "inet_proto", "inet_service"], [`${addressHex("10.0.0.1")}0600000000500000`])],
    yes: [{}],
    no: [{ protocol: "icmp" }],
  },
  {
    name: "immediate: a constant is compared",
    match: [
      { kind: "immediate", to: 4, value: "00500000" },
      { kind: "cmp", operator: "==", from: 4, value: "0050" },
    ],
    yes: [{}],
    no: [],
  },
  { name: "counter: goes on", match: [{ kind: "counter" }], yes: [{}], no: [] },
];

describe.each(cases)("$name", ({ match, sets, chain = "prerouting filter 0", yes, no }) => {
  const table = tableOf({ [chain]: [[...match, ...drop]] }, sets);
  const verdictOf = (fields: Partial<Packet>) => {
    const sent = packet(fields);
    const { sport: _, dport: __, ...portless } = sent;
    const outcomes = trace({ nftables: [table] }, sent.protocol === "icmp" ? portless : sent, HOST);
    return outcomes.map(({ verdict: end }) => end);
  };

  test.each(yes)("matches %j", (fields) => {
    expect(verdictOf(fields)).toEqual(["drop"]);
  });

  test.each(no)("does not match %j", (fields) => {
    expect(verdictOf(fields)).toEqual(["accept"]);
  });
});

describe("what changes the packet", () => {
  const through = (chain: string, rule: readonly Expression[], sent = packet(), environment: Environment = HOST) => {
    const [outcome, ...more] = trace({ nftables: [tableOf({ [chain]: [rule] })] }, sent, environment);
    expect(more).toEqual([]);
    return outcome;
  };

  test("a mark is set, and one that is there changed", () => {
    expect(through("prerouting filter", statements.setMark(0x4000), packet({ mark: 1 }))?.mark).toBe(0x4001);
    expect(through("prerouting filter", statements.flipMark(0x4000), packet({ mark: 0x4001 }))?.mark).toBe(1);
  });

  test("dnat translates and ends the chain", () => {
    const outcome = through("prerouting nat", [...statements.dnatTo("ip", "10.144.1.5", 8080), ...drop]);
    expect(outcome).toMatchObject({ verdict: "accept", translated: true, path: "forward", outInterface: "cali1" });
    expect(outcome?.destination).toEqual({ address: "10.144.1.5", port: 8080 });
  });

  test("masquerade takes the node's address", () => {
    const outcome = through("postrouting nat", statements.MASQUERADE);
    expect(outcome).toMatchObject({ masqueraded: true, source: { address: "10.201.0.10", port: 40_000 } });
  });

  test.each([
    ["forward filter", "tcp", "icmp-port-unreachable"],
    ["forward filter", "udp", "icmp-port-unreachable"],
  ])("%s refuses %s with %s", (chain, protocol, rejectWith) => {
    expect(through(chain, statements.rejectPacket("ip"), packet({ protocol }))).toMatchObject({
      verdict: "reject",
      rejectWith,
      table: "ip t",
    });
  });

  test("there is no reset of what is not TCP: it is dropped", () => {
    const reset: readonly Expression[] = [{ kind: "reject", with: "tcp-reset", code: 0 }];
    expect(through("forward filter", reset)).toMatchObject({ verdict: "reject", rejectWith: "tcp-reset" });
    expect(through("forward filter", reset, packet({ protocol: "udp" }))?.verdict).toBe("drop");
  });

  test.each([
    ["prerouting filter", statements.dnatTo("ip", "10.144.1.5", 80), "dnat is valid in chains of type nat only"],
    ["postrouting nat", statements.dnatTo("ip", "10.144.1.5", 80), "dnat is valid at PREROUTING, OUTPUT only"],
    ["output nat", statements.MASQUERADE, "masquerade is valid at POSTROUTING only"],
    ["postrouting filter", statements.rejectPacket("ip"), "reject is valid at PREROUTING, INPUT, FORWARD, OUTPUT only"],
  ])("in %s the kernel would not load it", (chain, rule, problem) => {
    expect(() => through(chain, rule, chain.startsWith("output") ? ownPacket() : packet())).toThrow(problem);
  });
});

describe("what packets put into sets", () => {
  const remember: readonly Expression[] = [
    load("ip", "saddr", 0),
    { kind: "dynset", set: "seen", operation: "update", from: 0 },
  ];
  const seen = setOf("seen", ["ipv4_addr"], [], { flags: ["dynamic", "timeout"], timeout: 10_000 });
  const key = addressHex("192.0.2.9");
  const known = [...lookUp("ip", ["saddr"], "seen"), ...drop];

  test("is told, and found by later rules and packets", () => {
    const [outcome] = trace({ nftables: [tableOf({ "prerouting filter": [remember] }, [seen])] }, packet(), HOST);
    expect(outcome?.remembered).toEqual([{ table: "ip t", set: "seen", key, timeout: 10_000 }]);
    const asking = tableOf({ "prerouting filter": [known] }, [seen]);
    const verdicts = (environment: Environment) =>
      trace({ nftables: [asking] }, packet(), environment).map(({ verdict: end }) => end);
    expect(verdicts(HOST)).toEqual(["accept"]);
    expect(verdicts({ ...HOST, remembered: outcome?.remembered ?? [] })).toEqual(["drop"]);
    const both = tableOf({ "prerouting filter": [remember, known] }, [seen]);
    expect(trace({ nftables: [both] }, packet(), HOST)).toMatchObject([{ verdict: "drop" }]);
  });

  test("keeps the value that a map has, and its time is told", () => {
    const value = addressHex("192.0.2.1");
    const map = {
      ...setOf("seen", ["ipv4_addr"], [], { flags: ["dynamic", "timeout"] }),
      data: ["ipv4_addr"] as const,
      elements: new Map([[key, { key, value }]]),
    };
    const update: readonly Expression[] = [
      load("ip", "saddr", 0),
      load("ip", "daddr", 1),
      { kind: "dynset", set: "seen", operation: "add", from: 0, value: 1, timeout: 5000 },
    ];
    const [outcome] = trace({ nftables: [tableOf({ "prerouting filter": [update] }, [map])] }, packet(), HOST);
    expect(outcome?.remembered).toEqual([{ table: "ip t", set: "seen", key, value, timeout: 5000 }]);
  });

  test("ends the rule where there is no room, but for what is there", () => {
    const through = (keys: readonly string[]) => {
      const full = setOf("seen", ["ipv4_addr"], keys, { flags: ["dynamic", "timeout"], size: 1 });
      return trace({ nftables: [tableOf({ "prerouting filter": [[...remember, ...drop]] }, [full])] }, packet(), HOST);
    };
    expect(through([addressHex("192.0.2.200")])).toMatchObject([{ verdict: "accept", remembered: [] }]);
    expect(through([key])).toMatchObject([{ verdict: "drop" }]);
  });

  test("may be taken out again", () => {
    const forget: readonly Expression[] = [
      load("ip", "saddr", 0),
      { kind: "dynset", set: "seen", operation: "delete", from: 0 },
    ];
    const full = setOf("seen", ["ipv4_addr"], [key], { flags: ["dynamic", "timeout"] });
    const table = tableOf({ "prerouting filter": [forget, known] }, [full]);
    expect(trace({ nftables: [table] }, packet(), HOST)).toMatchObject([{ verdict: "accept" }]);
  });
});

describe("hashes", () => {
  test("of one sender are one number, and those of many all numbers alike", () => {
    const rule: readonly Expression[] = [
      load("ip", "saddr", 0),
      { kind: "hash", from: 0, length: 4, modulus: 4, seed: 7, to: 1 },
      { kind: "lookup", set: "m", from: 1, to: 2 },
      { kind: "meta", key: "mark", from: 2 },
    ];
    const numbers = setOf(
      "m",
      ["integer"],
      [0, 1, 2, 3].map((slot) => [hostHex(slot), hostHex(slot + 1)] as const),
      { data: ["mark"] },
    );
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
      { kind: "hash", from: 0, length: 4, modulus: 4, seed: 7, to: 1 },
      { kind: "meta", key: "mark", from: 1 },
    ];
    const outcomes = trace({ nftables: [tableOf({ "prerouting filter": [rule] })] }, packet(), HOST);
    expect(outcomes.map(({ mark, probability }) => [mark, probability]).sort()).toEqual([
      [0, 0.25],
      [1, 0.25],
      [2, 0.25],
      [3, 0.25],
    ]);
  });
});

test("a protocol that has no name here is told by its number", () => {
  const rule = [
    { kind: "meta", key: "l4proto", to: 0 },
    { kind: "cmp", operator: "==", from: 0, value: hexOf([47]) },
  ] as const;
  const table = tableOf({ "prerouting filter": [[...rule, ...drop]] });
  const { sport: _, dport: __, ...sent } = packet({ protocol: "47" });
  expect(trace({ nftables: [table] }, sent, HOST)).toMatchObject([{ verdict: "drop" }]);
});

const through = (rule: readonly Expression[], sent = packet(), sets: readonly NftSet[] = []) =>
  explore({ nftables: [tableOf({ "prerouting filter": [rule] }, sets)] }, sent, HOST);
const ends = ({ outcomes }: ReturnType<typeof through>) => outcomes.map(({ verdict: end }) => end).sort();

describe("a rule that puts connections into a flowtable", () => {
  const flow: Expression = { kind: "flow-offload", flowtable: "ft" };

  test("lets the packet on, whether the flowtable takes the connection or not", () => {
    const found = through([flow], packet({ state: "ESTABLISHED" }));
    expect(ends(found)).toEqual(["accept"]);
    expect(found.undecided).toEqual([]);
  });

  test("ends where the connection is not established, or has another protocol", () => {
    expect(ends(through([flow, ...drop]))).toEqual(["accept"]);
    expect(ends(through([flow, ...drop], packet({ state: "ESTABLISHED", protocol: "sctp" })))).toEqual(["accept"]);
  });

  test("may end for an established connection: both ways are there", () => {
    expect(ends(through([flow, ...drop], packet({ state: "ESTABLISHED" })))).toEqual(["accept", "drop"]);
  });
});

describe("named objects", () => {
  const named = (object: NamedObject): Expression => ({ kind: "objref", object, name: "o" });

  test.each(["counter", "ct helper", "ct timeout", "secmark", "ct expectation"] as const)(
    "a %s lets the packet on",
    (object) => {
      const found = through([named(object), ...drop]);
      expect(ends(found)).toEqual(["drop"]);
      expect(found.undecided).toEqual([]);
    },
  );

  test("an expectation ends the rule where the connection is known already (nft_ct_expect_obj_eval)", () => {
    expect(ends(through([named("ct expectation"), ...drop], packet({ state: "ESTABLISHED" })))).toEqual(["accept"]);
  });

  test.each(["quota", "limit"] as const)("whether a %s is used up is not known: both ways are there", (object) => {
    expect(ends(through([named(object), ...drop]))).toEqual(["accept", "drop"]);
  });

  test("synproxy answers TCP itself, and leaves the rest", () => {
    expect(through([named("synproxy"), ...drop]).undecided).toHaveLength(1);
    expect(ends(through([named("synproxy"), ...drop], packet({ protocol: "udp" })))).toEqual(["accept"]);
  });

  test("a map of objects ends the rule where it has none for the packet", () => {
    const element = (address: string) => [addressHex(address), { key: addressHex(address), object: "o" }] as const;
    const map = (address: string): NftSet => ({
      name: "m",
      key: ["ipv4_addr"],
      objects: "counter",
      flags: [],
      elements: new Map([element(address)]),
    });
    const rule: readonly Expression[] = [load("ip", "saddr", 0), { kind: "objref", map: "m", from: 0 }, ...drop];
    expect(ends(through(rule, packet(), [map("192.0.2.9")]))).toEqual(["drop"]);
    expect(ends(through(rule, packet(), [map("192.0.2.10")]))).toEqual(["accept"]);
    expect(through(rule).undecided).toHaveLength(1);
  });
});

import type { IPFamily } from "@fairlead/core";
import {
  addressHex,
  type BaseChain,
  type Expression,
  type Hex,
  hexOf,
  hostHex,
  NFT_FAMILY,
  type NftChain,
  type NftSet,
  type NftTable,
  PROTOCOLS,
  padded,
  portHex,
  type SetElement,
  statements,
  type Verdict,
} from "@fairlead/netfilter/nft";
import { clientA, NETWORKS, NODE_A, outside, webA1, webA2, webB1 } from "@fairlead/testkit";
import fc from "fast-check";
import { FRONTENDS, PORTS } from "./arbitrary-rules.ts";

const base = (type: BaseChain["type"], hook: BaseChain["hook"], priority: number): BaseChain => {
  return { type, hook, priority, policy: "accept" };
};

/** Where a chain is: what may be said there, and which chains it leads to, later ones only. */
interface Shape {
  readonly name: string;
  readonly base?: BaseChain;
  readonly end: "mark" | "dnat" | "masquerade" | "filter";
  readonly calls: readonly string[];
  readonly map?: "dispatch" | "gates";
}

/** Callees first: nft reads a table from its beginning. */
const CHAINS: readonly Shape[] = [
  { name: "endpoint", end: "dnat", calls: [] },
  { name: "service", end: "dnat", calls: ["endpoint"] },
  { name: "services", end: "dnat", calls: ["service", "endpoint"], map: "dispatch" },
  { name: "leaving", end: "masquerade", calls: [] },
  { name: "decision", end: "filter", calls: [] },
  { name: "gate", end: "filter", calls: ["decision"] },
  { name: "early", base: base("filter", "prerouting", -150), end: "mark", calls: [] },
  {
    name: "nat-in",
    base: base("nat", "prerouting", -100),
    end: "dnat",
    calls: ["services", "service"],
    map: "dispatch",
  },
  { name: "nat-own", base: base("nat", "output", -100), end: "dnat", calls: ["services", "service"], map: "dispatch" },
  { name: "nat-out", base: base("nat", "postrouting", 100), end: "masquerade", calls: ["leaving"] },
  { name: "filter-in", base: base("filter", "input", 0), end: "filter", calls: ["gate", "decision"], map: "gates" },
  {
    name: "filter-through",
    base: base("filter", "forward", 0),
    end: "filter",
    calls: ["gate", "decision"],
    map: "gates",
  },
  { name: "filter-out", base: base("filter", "output", 0), end: "filter", calls: ["gate"], map: "gates" },
];

/**
 * Tables of any shape over what the test ground's packets have: headers, ports, marks, address types, connection
 * states, sets, random choices, hashes; jumps, gotos, verdict maps, translations, refusals. Answers come back: what
 * belongs to a known connection passes the filters.
 */
export function nftTables(family: IPFamily): fc.Arbitrary<NftTable> {
  const chains = fc.tuple(...CHAINS.map((shape) => chainOf(shape, family)));
  return chains.map((made) => ({
    family: NFT_FAMILY[family],
    name: "arbitrary",
    chains: new Map(made.map((chain) => [chain.name, chain])),
    sets: new Map(setsOf(family).map((set) => [set.name, set])),
  }));
}

/** `ct state established,related accept` */
const ANSWERS: readonly Expression[] = [
  { kind: "ct", key: "state", to: 0 },
  { kind: "bitwise", from: 0, to: 0, mask: hostHex(0x6), xor: hostHex(0) },
  { kind: "cmp", operator: "!=", from: 0, value: hostHex(0) },
  ...statements.verdict({ kind: "accept" }),
];

/** Without it IPv6 finds no neighbor: `meta l4proto ipv6-icmp accept`. */
const NEIGHBORS: readonly Expression[] = [
  ...statements.protocolIs("ipv6-icmp"),
  ...statements.verdict({ kind: "accept" }),
];

function chainOf(shape: Shape, family: IPFamily): fc.Arbitrary<NftChain> {
  const { name, base: own } = shape;
  const passing = own?.type === "filter" ? [{ expressions: ANSWERS }, { expressions: NEIGHBORS }] : [];
  return fc.array(ruleOf(shape, family), { minLength: 1, maxLength: 5 }).map((rules) => ({
    name,
    ...(own && { base: own }),
    rules: [...passing, ...rules.map((expressions) => ({ expressions }))],
  }));
}

function ruleOf(shape: Shape, family: IPFamily): fc.Arbitrary<readonly Expression[]> {
  return fc
    .tuple(fc.array(condition(family, shape), { maxLength: 2 }), endOf(shape, family))
    .map(([conditions, end]) => [...conditions.flat(), ...end])
    .filter(isLoadable);
}

/** nft refuses rules of two protocols, and those of UDP that look into a map whose ports are TCP's by name. */
function isLoadable(expressions: readonly Expression[]): boolean {
  const protocols = protocolsIn(expressions);
  const drawsEndpoint = expressions.some((one) => one.kind === "lookup" && one.set === "endpoints");
  return protocols.size <= 1 && !(drawsEndpoint && protocols.has(UDP));
}

const UDP = hexOf([PROTOCOLS["udp"] ?? 0]);

function protocolsIn(expressions: readonly Expression[]): ReadonlySet<string> {
  return new Set(
    expressions.flatMap((one, at) => {
      const before = expressions[at - 1];
      return one.kind === "cmp" && before?.kind === "meta" && before.key === "l4proto" ? [one.value] : [];
    }),
  );
}

type Words = fc.Arbitrary<readonly Expression[]>;

/**
 * What the node refuses of its own packets it sends again, and then nat is not asked, which may have set the mark: a
 * rule that matches marks there sees another packet than the first.
 */
const NO_MARKS: ReadonlySet<string> = new Set(["filter-in", "gate", "decision"]);

function condition(family: IPFamily, { name: chain }: Shape): Words {
  const of = NFT_FAMILY[family];
  const { addressIn, addressTypeIs, hasMark, interfaceIs, load, protocolIs } = statements;
  const cidrs = [NETWORKS.calico[family], NETWORKS.services[family], NETWORKS.outside[family]];
  const hosts = [clientA, webA1, outside, NODE_A].map(({ addresses }) => addresses[family]);
  const side = fc.constantFrom("saddr", "daddr");
  const equality = fc.constantFrom("==", "!=");
  const isOne: Expression = { kind: "cmp", operator: "==", from: 0, value: hostHex(1) };
  return fc.oneof(
    fc
      .tuple(side, fc.constantFrom(...cidrs, ...hosts.map((host) => `${host}/${of === "ip" ? 32 : 128}`)), equality)
      .map(([field, cidr, operator]) => addressIn(of, field, cidr, operator)),
    fc
      .tuple(fc.constantFrom("eth0", "cali*", "lo"), equality)
      .map(([name, operator]) => interfaceIs("iifname", name, operator)),
    fc
      .tuple(fc.constantFrom("eth0", "cali*", "lo"), equality)
      .map(([name, operator]) => interfaceIs("oifname", name, operator)),
    fc.constantFrom("tcp", "udp").map((protocol) => protocolIs(protocol)),
    fc
      .tuple(fc.constantFrom("==", "!=", "<", ">="), fc.constantFrom(...PORTS))
      .map(([operator, port]): readonly Expression[] => [
        load(of, "dport", 0),
        { kind: "cmp", operator, from: 0, value: portHex(port) },
      ]),
    ...(NO_MARKS.has(chain) ? [] : [fc.constantFrom(0x1, 0x4000).map((bit) => hasMark(bit))]),
    fc.constantFrom(statements.newConnection, statements.translatedConnection, statements.invalidPacket),
    side.map((field) => addressTypeIs(field, "local")),
    fc
      .tuple(side, fc.constantFrom("hosts", "networks"), fc.boolean())
      .map(([field, set, inverted]): readonly Expression[] => [
        load(of, field, 0),
        { kind: "lookup", set, from: 0, ...(inverted && { inverted: true as const }) },
      ]),
    fc.constantFrom(2, 4).map((modulus): readonly Expression[] => [{ kind: "numgen", modulus, to: 0 }, isOne]),
    fc
      .constantFrom(2, 3)
      .map((modulus): readonly Expression[] => [
        load(of, "saddr", 4),
        { kind: "hash", from: 4, length: of === "ip" ? 4 : 16, modulus, seed: 7, to: 0 },
        isOne,
      ]),
  );
}

function endOf({ end, calls, map }: Shape, family: IPFamily): Words {
  const of = NFT_FAMILY[family];
  const marks = fc.constantFrom(statements.setMark(0x1), statements.setMark(0x4000), statements.flipMark(0x4000));
  const verdicts: readonly Verdict[] = [
    { kind: "return" },
    ...calls.flatMap((chain): Verdict[] => [
      { kind: "jump", chain },
      { kind: "goto", chain },
    ]),
  ];
  const common: Words[] = [
    marks,
    fc.constant([{ kind: "counter" }]),
    fc.constantFrom(...verdicts).map((verdict) => statements.verdict(verdict)),
  ];
  if (map !== undefined) common.push(fc.constant(statements.lookUp(of, ["daddr", "l4proto", "dport"], map, "verdict")));
  if (end === "dnat") return fc.oneof(...common, translation(family), fc.constant(drawn(of)));
  if (end === "masquerade") return fc.oneof(...common, fc.constant(statements.MASQUERADE));
  if (end === "mark") return fc.oneof(...common, fc.constant(statements.verdict({ kind: "drop" })));
  const refusals = [statements.verdict({ kind: "drop" }), statements.verdict({ kind: "accept" })];
  return fc.oneof(...common, fc.constantFrom(...refusals, statements.rejectPacket(of)));
}

function translation(family: IPFamily): Words {
  const of = NFT_FAMILY[family];
  const hosts = [webA1, webA2, webB1, NODE_A].map(({ addresses }) => addresses[family]);
  return fc
    .tuple(fc.constantFrom("tcp", "udp"), fc.constantFrom(...hosts, FRONTENDS[family][0]), fc.constantFrom(8080, 9090))
    .map(([protocol, address, port]) => [...statements.protocolIs(protocol), ...statements.dnatTo(of, address, port)]);
}

/** `dnat to ip daddr . meta l4proto . th dport . numgen random mod 3 map @endpoints`, of which one slot is empty. */
function drawn(of: NftTable["family"]): readonly Expression[] {
  const { expressions, next } = statements.loadKey(of, ["daddr", "l4proto", "dport"]);
  return [
    ...expressions,
    { kind: "numgen", modulus: 3, to: next },
    { kind: "lookup", set: "endpoints", from: 0, to: 0 },
    { kind: "nat", family: of, address: 0, port: of === "ip" ? 1 : 4 },
  ];
}

function setsOf(family: IPFamily): readonly NftSet[] {
  const address = family === "IPv4" ? "ipv4_addr" : "ipv6_addr";
  const frontend = [address, "inet_proto", "inet_service"] as const;
  const hosts = [clientA, webA1, outside, NODE_A].map(({ addresses }) => ({ key: addressHex(addresses[family]) }));
  return [
    made({ name: "hosts", key: [address], flags: [] }, hosts),
    made({ name: "networks", key: [address], flags: ["interval"] }, networkBounds(family)),
    made({ name: "dispatch", key: frontend, data: "verdict", flags: [] }, verdicts(family, ["service", "endpoint"])),
    made({ name: "gates", key: frontend, data: "verdict", flags: [] }, verdicts(family, ["decision"])),
    made(
      { name: "endpoints", key: [...frontend, "integer"], data: [address, "inet_service"], flags: [] },
      endpoints(family),
    ),
  ];
}

function made(set: Omit<NftSet, "elements">, elements: readonly SetElement[]): NftSet {
  return { ...set, elements: new Map(elements.map((one) => [one.intervalEnd ? `${one.key} end` : one.key, one])) };
}

/** Where a network begins, and the first address behind it. */
function networkBounds(family: IPFamily): readonly SetElement[] {
  const bounds =
    family === "IPv4"
      ? [
          ["10.96.0.0", "10.112.0.0"],
          ["10.144.1.0", "10.144.2.0"],
        ]
      : [
          ["fd00:10:96::", "fd00:10:97::"],
          ["fd00:144::1:0", "fd00:144::2:0"],
        ];
  return bounds.flatMap(([from = "", behind = ""]) => [
    { key: addressHex(from) },
    { key: addressHex(behind), intervalEnd: true as const },
  ]);
}

function keysOf(family: IPFamily): readonly Hex[] {
  const addresses = [...FRONTENDS[family], NODE_A.addresses[family]];
  return addresses.flatMap((address) =>
    PORTS.flatMap((port) =>
      ["tcp", "udp"].map((name) => addressHex(address) + padded(hexOf([PROTOCOLS[name] ?? 0])) + padded(portHex(port))),
    ),
  );
}

/** Every other frontend leads to one of the chains, or is dropped or accepted. */
function verdicts(family: IPFamily, chains: readonly string[]): readonly SetElement[] {
  const all: readonly Verdict[] = [
    ...chains.flatMap((chain): Verdict[] => [
      { kind: "goto", chain },
      { kind: "jump", chain },
    ]),
    { kind: "accept" },
    { kind: "return" },
  ];
  return keysOf(family).flatMap((key, at) => {
    const value = all[Math.floor(at / 2) % all.length];
    return at % 2 === 0 && value !== undefined ? [{ key, value }] : [];
  });
}

/** Slots 0 and 1 of three for every third frontend. */
function endpoints(family: IPFamily): readonly SetElement[] {
  const targets = [webA1, webA2, webB1].map(({ addresses }) => addressHex(addresses[family]));
  return keysOf(family).flatMap((key, at) => {
    if (at % 3 !== 0) return [];
    return [0, 1].map((slot) => ({
      key: key + hostHex(slot),
      value: (targets[(at + slot) % targets.length] ?? "") + padded(portHex(8080)),
    }));
  });
}

import type { IPFamily } from "@fairlead/core";
import {
  type Expression,
  hexOf,
  hostHex,
  NFT_FAMILY,
  type NftChain,
  type NftTable,
  PROTOCOLS,
  portHex,
  statements,
  type Verdict,
} from "@fairlead/netfilter/nft";
import { clientA, NETWORKS, NODE_A, outside, webA1, webA2, webB1 } from "@fairlead/testkit";
import fc from "fast-check";
import { setsOf } from "./arbitrary-nft-sets.ts";
import { FRONTENDS, PORTS } from "./arbitrary-packets.ts";
import { CHAINS, type Shape } from "./nft-shapes.ts";

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

/** Without it IPv6 finds nobody: `meta l4proto ipv6-icmp accept`. */
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
 * What the node refuses of its own packets it sends again, and then nat is not asked, which may have set the mark: who
 * asks for marks there sees another packet than the first.
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

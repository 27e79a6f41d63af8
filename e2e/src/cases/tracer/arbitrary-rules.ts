import type { IPFamily } from "@fairlead/core";
import {
  type Match,
  type Rule,
  type RuleSet,
  statisticProbability,
  type Table,
  type Target,
} from "@fairlead/netfilter";
import {
  addressOf,
  clientA,
  clientB,
  type Host,
  NETWORKS,
  NODE_A,
  NODE_B,
  outside,
  ovnClient,
  SECOND_NODE_ADDRESS,
  stranger,
  webA1,
  webA2,
  webB1,
} from "@fairlead/testkit";
import fc from "fast-check";

/**
 * Rule sets of any shape over what the test ground's packets have: headers, ports, marks, address types, connection
 * states, random choices; jumps, gotos, translations, refusals. What belongs to a known connection passes, as in any
 * firewall:
 * answers have to come back.
 */
export function ruleSets(family: IPFamily): fc.Arbitrary<RuleSet> {
  return fc
    .record({ mangle: tableOf("mangle", family), nat: tableOf("nat", family), filter: tableOf("filter", family) })
    .map((tables) => new Map(Object.values(tables).map((table) => [table.table, table])));
}

const BUILT_IN = {
  mangle: ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"],
  nat: ["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"],
  filter: ["INPUT", "FORWARD", "OUTPUT"],
} as const satisfies Partial<Record<Table, readonly string[]>>;

type RandomTable = keyof typeof BUILT_IN;

/**
 * Which chain may be jumped to from where: each calls later ones only, those of one end of the way nothing of the
 * other.
 */
const OWN = {
  mangle: [["MARKS", ["PREROUTING", "OUTPUT", "FORWARD"]]],
  nat: [
    ["SERVICES", ["PREROUTING", "OUTPUT"]],
    ["SERVICE", ["PREROUTING", "OUTPUT", "SERVICES"]],
    ["ENDPOINT", ["SERVICES", "SERVICE"]],
    ["LEAVING", ["POSTROUTING"]],
  ],
  filter: [
    ["GATE", ["INPUT", "FORWARD", "OUTPUT"]],
    ["VERDICT", ["FORWARD", "INPUT", "GATE"]],
  ],
} as const satisfies Readonly<Record<RandomTable, readonly (readonly [string, readonly string[]])[]>>;

const ANSWERS: Rule = {
  matches: [{ kind: "conntrack", states: ["RELATED", "ESTABLISHED"] }],
  target: { kind: "accept" },
};

function tableOf(table: RandomTable, family: IPFamily) {
  const own: readonly (readonly [string, readonly string[]])[] = OWN[table];
  const builtIn: readonly string[] = BUILT_IN[table];
  const names = [...builtIn, ...own.map(([name]) => name)];
  const calls = (chain: string) => own.filter(([, callers]) => callers.includes(chain)).map(([name]) => name);
  return fc.tuple(...names.map((chain) => chainRules(table, chain, calls(chain), family))).map((rules) => ({
    table,
    chains: new Map(names.map((name, at) => [name, chainOf(name, builtIn.includes(name), table, rules[at] ?? [])])),
  }));
}

function chainOf(name: string, builtIn: boolean, table: RandomTable, rules: readonly Rule[]) {
  if (!builtIn) return { name, rules };
  return { name, policy: "ACCEPT" as const, rules: table === "nat" ? rules : [ANSWERS, ...rules] };
}

function chainRules(table: RandomTable, chain: string, calls: readonly string[], family: IPFamily) {
  return fc.array(rule(table, chain, calls, family), { minLength: 1, maxLength: 4 });
}

function rule(table: RandomTable, chain: string, calls: readonly string[], family: IPFamily): fc.Arbitrary<Rule> {
  return fc
    .record({
      header: header(chain, family),
      matches: fc.array(match(family), { maxLength: 2 }),
      protocol: fc.option(protocolMatch(), { nil: undefined, freq: 2 }),
      target: target(table, chain, calls, family),
    })
    .map(({ header: asked, matches, protocol, target: goal }) => assemble(asked, matches, protocol, goal));
}

type Protocol = Pick<Rule, "protocol" | "matches">;

/** Targets that name ports need a protocol. */
function assemble(
  asked: Partial<Rule>,
  matches: readonly Match[],
  protocol: Protocol | undefined,
  goal: Target | undefined,
): Rule {
  const needs = goal?.kind === "dnat" || goal?.kind === "masquerade" || goal?.kind === "redirect";
  const own = protocol ?? (needs ? { protocol: { value: "tcp" }, matches: [] } : undefined);
  return {
    ...asked,
    ...(own?.protocol !== undefined && { protocol: own.protocol }),
    matches: [...(own?.matches ?? []), ...matches],
    ...(goal !== undefined && { target: goal }),
  };
}

const negated = fc.option(fc.constant({ negated: true }), { nil: {}, freq: 4 });

function header(chain: string, family: IPFamily): fc.Arbitrary<Partial<Rule>> {
  const bits = family === "IPv4" ? 32 : 128;
  const host = (address: string) => `${address}/${bits}`;
  const sources = [clientA, webA1, outside, NODE_A].map(({ addresses }) => host(addresses[family]));
  const destinations = [...FRONTENDS[family], NODE_A.addresses[family], webA1.addresses[family]].map(host);
  const address = (cidrs: readonly string[]) =>
    fc.tuple(fc.constantFrom(...cidrs), negated).map(([cidr, not]) => ({ ...not, cidr }));
  const device = fc.tuple(fc.constantFrom("eth0", "cali+", "lo", "ovn-ovn-client"), negated);
  const name = device.map(([value, not]) => ({ ...not, value }));
  const arrives = ["PREROUTING", "INPUT", "FORWARD"].includes(chain);
  const leaves = ["FORWARD", "OUTPUT", "POSTROUTING"].includes(chain);
  return fc.record(
    {
      source: address([...sources, NETWORKS.calico[family], NETWORKS.outside[family]]),
      destination: address([...destinations, NETWORKS.services[family], NETWORKS.calico[family]]),
      ...(arrives && { inInterface: name }),
      ...(leaves && { outInterface: name }),
    },
    { requiredKeys: [] },
  );
}

function protocolMatch(): fc.Arbitrary<Protocol> {
  const range = fc.oneof(
    fc.constantFrom(...PORTS).map((port) => ({ from: port, to: port })),
    fc.constantFrom({ from: 50, to: 80 }, { from: 81, to: 9090 }),
  );
  return fc.record({ kind: fc.constantFrom("tcp", "udp"), range, not: negated }).map(({ kind, range: dport, not }) => ({
    protocol: { value: kind },
    matches: [{ kind, dport: { ...not, ...dport } }],
  }));
}

function match(family: IPFamily): fc.Arbitrary<Match> {
  const bit = fc.constantFrom(0x1, 0x4000).map((value) => ({ value, mask: value }));
  const types = family === "IPv4" ? (["LOCAL", "UNICAST"] as const) : (["LOCAL"] as const);
  const type = fc.tuple(fc.constantFrom(...types), negated).map(([value, not]) => ({ ...not, value }));
  const states = fc.constantFrom(["NEW"], ["DNAT"], ["SNAT"], ["INVALID"], ["NEW", "DNAT"]) satisfies fc.Arbitrary<
    readonly string[]
  >;
  return fc.oneof(
    fc.tuple(bit, negated).map(([mark, not]): Match => ({ kind: "mark", ...not, ...mark })),
    fc.record({ srcType: type }).map((asked): Match => ({ kind: "addrtype", ...asked })),
    fc.record({ dstType: type }).map((asked): Match => ({ kind: "addrtype", ...asked })),
    fc.tuple(states, negated).map(([asked, not]): Match => ({ kind: "conntrack", ...not, states: asked })),
    fc
      .constantFrom(0.25, 0.5, 0.9)
      .map((value): Match => ({ kind: "statistic", mode: "random", probability: statisticProbability(value) })),
    fc.constant<Match>({ kind: "comment", text: "as good as any" }),
  );
}

function target(
  table: RandomTable,
  chain: string,
  calls: readonly string[],
  family: IPFamily,
): fc.Arbitrary<Target | undefined> {
  const common: fc.Arbitrary<Target | undefined>[] = [
    fc.constantFrom<Target | undefined>({ kind: "return" }, undefined),
    ...(calls.length === 0
      ? []
      : [
          fc.constantFrom(...calls).map((name): Target => ({ kind: "jump", chain: name })),
          fc.constantFrom(...calls).map((name): Target => ({ kind: "jump", chain: name })),
          fc.constantFrom(...calls).map((name): Target => ({ kind: "goto", chain: name })),
        ]),
    fc.constantFrom<Target>({ kind: "mark", value: 0x1, mask: 0x1 }, { kind: "mark", value: 0x4000, mask: 0x0 }),
  ];
  return fc.oneof(...common, ...special(table, chain, family));
}

function special(table: RandomTable, chain: string, family: IPFamily): fc.Arbitrary<Target>[] {
  if (table === "mangle") return [];
  if (table === "filter") {
    const port = family === "IPv4" ? "icmp-port-unreachable" : "icmp6-port-unreachable";
    return [fc.constantFrom<Target>({ kind: "drop" }, { kind: "accept" }), fc.constant({ kind: "reject", with: port })];
  }
  // Another port than any that packets are sent from: the node's own packets show it by that only.
  if (["POSTROUTING", "LEAVING"].includes(chain)) return [fc.constant({ kind: "masquerade", toPorts: "61000-65000" })];
  if (chain === "INPUT") return [];
  // IPv6 picks among the interface's addresses by rules of its own.
  const redirect: Target[] = family === "IPv4" ? [{ kind: "redirect", toPorts: "8080" }] : [];
  return [translation(family), translation(family), ...redirect.map((to) => fc.constant(to))];
}

function translation(family: IPFamily): fc.Arbitrary<Target> {
  const hosts = [webA1, webA2, webB1, NODE_A].map(({ addresses }) => addresses[family]);
  const addresses = [...hosts, SECOND_NODE_ADDRESS[family], FRONTENDS[family][0]];
  return fc
    .tuple(fc.constantFrom(...addresses), fc.constantFrom(8080, 9090, undefined))
    .map(([address, port]): Target => {
      if (port === undefined) return { kind: "dnat", to: address };
      return { kind: "dnat", to: family === "IPv4" ? `${address}:${port}` : `[${address}]:${port}` };
    });
}

/** A real packet: the first of a connection, whose way leads through node-a. */
export interface SentPacket {
  readonly from: Host;
  readonly family: IPFamily;
  readonly protocol: "TCP" | "UDP";
  /** Where the sender sends from; the kernel chooses by itself for node-a, and chooses this. */
  readonly source: string;
  readonly destination: string;
  readonly port: number;
}

/** Every host listens on these: that a port is closed is not to be taken for a rule's refusal. */
export const PORTS = [53, 80, 8080, 9090] as const;

/** Addresses of no host; packets to them pass node-a, from every sender. */
export const FRONTENDS = {
  IPv4: ["10.96.7.1", "10.96.7.2", "203.0.113.7", "192.0.2.7"],
  IPv6: ["fd00:10:96::71", "fd00:10:96::72", "fd00:203::7", "fd00:192::7"],
} as const;

/** On node-a, and elsewhere. */
export const senders = {
  here: [NODE_A, clientA, webA1, ovnClient],
  elsewhere: [outside, stranger, clientB, NODE_B],
} as const;

export function sentPackets(family: IPFamily): fc.Arbitrary<SentPacket> {
  const everywhere = destinationsOf(family, [webA1, webA2]);
  const here = fc
    .constantFrom(...senders.here)
    .chain((from) => packetsFrom(from, family, [...everywhere, webB1.addresses[family]]));
  const elsewhere = fc.constantFrom(...senders.elsewhere).chain((from) => packetsFrom(from, family, everywhere));
  return fc.oneof(here, elsewhere);
}

function destinationsOf(family: IPFamily, pods: readonly Host[]): readonly string[] {
  const node = [NODE_A.addresses[family], SECOND_NODE_ADDRESS[family]];
  return [...FRONTENDS[family], ...node, ...pods.map(({ addresses }) => addresses[family])];
}

function packetsFrom(from: Host, family: IPFamily, destinations: readonly string[]): fc.Arbitrary<SentPacket> {
  return fc
    .record({
      from: fc.constant(from),
      family: fc.constant(family),
      // A datagram that its own host refuses and one that it drops are one error to the sender.
      protocol: from === NODE_A ? fc.constant("TCP") : fc.constantFrom("TCP", "UDP"),
      destination: fc.constantFrom(
        ...destinations.filter((address) => from === NODE_A || address !== from.addresses[family]),
      ),
      port: fc.constantFrom(...PORTS),
    })
    .map((packet) => ({ ...packet, source: sourceOf(from, packet.destination, family) }));
}

/** What the host sends to an address of its own it sends from there. */
function sourceOf(from: Host, destination: string, family: IPFamily): string {
  const own = from === NODE_A && destination === SECOND_NODE_ADDRESS[family];
  return own ? destination : addressOf(from, family);
}

import fc from "fast-check";
import {
  type AddressMatch,
  type ConntrackState,
  canonicalCIDR,
  type IPFamily,
  type Match,
  type NameMatch,
  type PortMatch,
  type Rule,
  statisticProbability,
  type Target,
  type TCPFlagsMatch,
} from "../src/index.ts";

/** Rules in canonical form, as far as iptables takes them. `sets`: with matches that need objects of other tools. */
export interface RuleKinds {
  readonly family: IPFamily;
  readonly table: "filter" | "nat";
  readonly chains: readonly string[];
  readonly objects: boolean;
  readonly comment: fc.Arbitrary<string>;
}

const negation = fc.constantFrom<{ negated?: true }>({}, { negated: true });

/** Names of chains and the like: one word, of at most 28 characters, none that is a target's. */
export const wordName = fc.stringMatching(/^[A-Z][A-Za-z0-9_.:-]{0,20}-x$/);

export const plainComment = fc.stringMatching(/^[a-zA-Z0-9][ -~]{0,60}$/);

export function rules(kinds: RuleKinds): fc.Arbitrary<Rule> {
  return fc
    .record(
      {
        source: address(kinds.family),
        destination: address(kinds.family),
        inInterface: interfaceName(),
        outInterface: interfaceName(),
        ports: ports(),
        matches: fc.array(match(kinds), { maxLength: 3 }),
        target: target(kinds),
      },
      { requiredKeys: ["matches"] },
    )
    .map(assemble);
}

type Parts = Omit<Rule, "protocol"> & { readonly ports?: PortsOf };
type PortsOf = { readonly protocol: NameMatch; readonly match: Match | undefined };

/** Port matches need their protocol, and so do targets that set ports. */
function assemble({ ports: chosen, matches, target: goal, ...rest }: Parts): Rule {
  const asksPorts = goal !== undefined && needsProtocol(goal);
  const protocol = asksPorts && chosen?.match === undefined ? ({ value: "tcp" } as const) : chosen?.protocol;
  return {
    ...rest,
    ...(protocol === undefined ? {} : { protocol }),
    matches: chosen?.match === undefined ? matches : [...matches, chosen.match],
    ...(goal === undefined ? {} : { target: goal }),
  };
}

function needsProtocol(goal: Target): boolean {
  return goal.kind === "dnat" || goal.kind === "redirect" || (goal.kind === "masquerade" && goal.toPorts !== undefined);
}

function address(family: IPFamily): fc.Arbitrary<AddressMatch> {
  const host = family === "IPv4" ? fc.ipV4() : fc.ipV6().filter((text) => !text.includes("."));
  const length = fc.integer({ min: 1, max: family === "IPv4" ? 32 : 128 });
  return fc.record({ host, length, negation }).map((parts) => ({
    ...parts.negation,
    cidr: canonicalCIDR(`${parts.host}/${parts.length}`),
  }));
}

function interfaceName(): fc.Arbitrary<NameMatch> {
  return fc
    .record({ value: fc.stringMatching(/^[a-z][a-z0-9.]{1,12}\+?$/), negation })
    .map(({ value, negation: not }) => ({
      ...not,
      value,
    }));
}

const FLAGS: TCPFlagsMatch["asked"][number][] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG"];

function port(): fc.Arbitrary<PortMatch> {
  return fc
    .record({ bounds: fc.tuple(fc.nat(0xffff), fc.nat(0xffff)), negation })
    .map(({ bounds, negation: not }) => ({ ...not, from: Math.min(...bounds), to: Math.max(...bounds) }))
    .filter(({ from, to }) => from > 0 && to < 0xffff);
}

function ports(): fc.Arbitrary<PortsOf> {
  const withMatch = fc
    .record({ kind: fc.constantFrom("tcp", "udp", "sctp"), sport: port(), dport: port() }, { requiredKeys: ["kind"] })
    .map((fields) => ({ protocol: { value: fields.kind }, match: fields as Match }));
  const withFlags = fc
    .record({ dport: port(), negation, asked: fc.subarray(FLAGS, { minLength: 1 }), set: fc.subarray(FLAGS) })
    .map(({ dport, negation: not, ...flags }) => ({
      protocol: { value: "tcp" },
      match: { kind: "tcp", dport, flags: { ...not, ...flags } } as const,
    }));
  const withoutMatch = fc
    .record({ value: fc.constantFrom("tcp", "udp", "sctp", "esp", "ah"), negation })
    .map(({ value, negation: not }) => ({ protocol: { ...not, value }, match: undefined }));
  return fc.oneof(withMatch, withFlags, withoutMatch);
}

const unsigned = fc.oneof(fc.nat(0xffff), fc.integer({ min: 0, max: 0xffffffff }), fc.constant(0xffffffff));

function match({ family, objects, comment }: RuleKinds): fc.Arbitrary<Match> {
  const mask = family === "IPv4" ? "255.255.255.255" : "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
  const side = fc.constantFrom<"rsource" | "rdest">("rsource", "rdest");
  const free: fc.Arbitrary<Match>[] = [
    comment.map((text) => ({ kind: "comment", text })),
    fc
      .record({ states: fc.subarray(STATES, { minLength: 1 }), negation })
      .map(({ states, negation: not }) => ({ kind: "conntrack", ...not, states })),
    fc
      .record({ value: unsigned, mask: unsigned, negation })
      .map(({ negation: not, ...mark }) => ({ kind: "mark", ...not, ...mark })),
    fc.record({ srcType: addressType() }).map((types) => ({ kind: "addrtype", ...types })),
    fc.record({ srcType: addressType(), dstType: addressType() }).map((types) => ({ kind: "addrtype", ...types })),
    fc
      .nat(0x80000000)
      .map((count) => ({ kind: "statistic", mode: "random", probability: statisticProbability(count / 0x80000000) })),
    fc.record({ name: wordName, side }).map((fields) => ({ kind: "recent", op: "set", ...fields, mask })),
    fc
      .record({ name: wordName, side, seconds: fc.integer({ min: 1, max: 86400 }) })
      .map((fields) => ({ kind: "recent", op: "rcheck", ...fields, reap: true, mask })),
  ];
  const named: fc.Arbitrary<Match>[] = [
    wordName.map((name) => ({ kind: "nfacct", name })),
    fc.record({
      kind: fc.constant("ipvs"),
      protocol: fc.constantFrom("tcp", "udp", "sctp"),
      address: fc.constant(family === "IPv4" ? "10.96.0.1" : "fd00:10:96::1"),
      port: fc.integer({ min: 1, max: 65_535 }),
    }),
    fc
      .record({
        name: wordName,
        negation,
        flags: fc.array(fc.constantFrom("src", "dst"), { minLength: 1, maxLength: 3 }),
      })
      .map(({ negation: not, ...set }) => ({ kind: "set", ...not, ...set })),
    fc
      .record({ negation, is: fc.constantFrom("in", "out", "bridged") })
      .map(({ negation: not, is }) => ({ kind: "physdev", ...not, is })),
  ];
  return fc.oneof(...free, ...(objects ? named : []));
}

const STATES: ConntrackState[] = ["INVALID", "NEW", "RELATED", "ESTABLISHED", "UNTRACKED", "SNAT", "DNAT"];

function addressType(): fc.Arbitrary<NameMatch> {
  return fc
    .record({ value: fc.constantFrom("LOCAL", "UNICAST", "MULTICAST", "LOCAL,MULTICAST"), negation })
    .map(({ value, negation: not }) => ({ ...not, value }));
}

function target({ family, table, chains }: RuleKinds): fc.Arbitrary<Target> {
  const everywhere: fc.Arbitrary<Target>[] = [
    fc.constantFrom<Target>({ kind: "accept" }, { kind: "return" }),
    fc.record({ value: unsigned, mask: unsigned }).map((fields) => ({ kind: "mark", ...fields })),
    ...(chains.length === 0
      ? []
      : [
          fc
            .record({ kind: fc.constantFrom("jump", "goto"), chain: fc.constantFrom(...chains) })
            .map((fields): Target => fields),
        ]),
  ];
  return fc.oneof(...everywhere, ...(table === "filter" ? filterTargets(family) : natTargets(family)));
}

function filterTargets(family: IPFamily): fc.Arbitrary<Target>[] {
  const reject = family === "IPv4" ? "icmp-port-unreachable" : "icmp6-port-unreachable";
  return [fc.constantFrom<Target>({ kind: "drop" }, { kind: "reject", with: reject })];
}

const flag = fc.constantFrom<{ random?: true }>({}, { random: true });

function natTargets(family: IPFamily): fc.Arbitrary<Target>[] {
  const number = fc.integer({ min: 1, max: 0xffff });
  const to = family === "IPv4" ? "10.1.2.3" : "[fd00::1:2]";
  return [
    fc.record({ number, flag }).map(({ number: at, flag: random }) => ({ kind: "dnat", to: `${to}:${at}`, ...random })),
    fc
      .record({ number, flag })
      .map(({ number: at, flag: random }) => ({ kind: "redirect", toPorts: `${at}`, ...random })),
    fc.constantFrom<Target>(
      { kind: "masquerade" },
      { kind: "masquerade", randomFully: true },
      { kind: "masquerade", toPorts: "1000-2000" },
    ),
  ];
}

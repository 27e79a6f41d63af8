/** What becomes of a packet: where it ends, with which share, and whether two answers are the same. */

import { socketText } from "@fairlead/base";
import type { Frontend, ServicePortGroup, Treatment } from "@fairlead/core";
import type { RuleSet } from "@fairlead/netfilter";
import type { NftTable } from "@fairlead/netfilter/nft";
import {
  type Assumption,
  createTracer,
  type Environment,
  landings,
  type Outcome,
  type Packet,
  type TraceError,
  type Tracer,
  withoutOthersMasquerade,
} from "@fairlead/trace";

/**
 * Where the packets of one source to one destination end, with the share of each end: `10.144.1.5:8080`,
 * `10.144.1.5:8080 masqueraded`, `reject`, `drop`, or `untouched`.
 */
export type OutcomeShares = ReadonlyMap<string, number>;

/** What becomes of packets that nothing takes. */
export const UNTOUCHED = "untouched";

/**
 * What the plan wants for packets from an address.
 *
 * @param delivered whether the packet comes in and is for the node itself at an address: such a packet leaves by no
 *   interface, so nothing masquerades it
 * @param frontend where others are dropped, what the weights refuse is as well: rules have one verdict for all of it
 */
export function wantedWays(
  treatment: Treatment,
  group: ServicePortGroup,
  source: string,
  delivered: (address: string) => boolean,
  { treatments }: Pick<Frontend, "treatments">,
): OutcomeShares {
  if (treatment.verdict === "leave") return new Map([[UNTOUCHED, 1]]);
  if (treatment.verdict !== "proxy") return new Map([[treatment.verdict, 1]]);
  const endpoints = group[treatment.set];
  // A virtual server without destinations refuses.
  if (endpoints.length === 0) return new Map([["reject", 1]]);
  const { endpoints: weights = [], refused = 0 } = group.weights?.[treatment.set] ?? {};
  const total = endpoints.reduce((sum, _, at) => sum + (weights[at] ?? 1), refused);
  const shares = endpoints.map(({ address, port }, at): [string, number] => [
    // A pod that reaches itself has to answer the node, or it would answer itself past the translation.
    wayTo(socketText(address, port), (treatment.masquerade || address === source) && !delivered(address)),
    (weights[at] ?? 1) / total,
  ]);
  const refusal = Object.values(treatments).some(({ verdict }) => verdict === "drop") ? "drop" : "reject";
  return sumOfShares(refused === 0 ? shares : [...shares, [refusal, refused / total]]);
}

/** What rules do, as the tracer found out; of an exploration the shares among all of its outcomes. */
export function tracedWays(outcomes: readonly Outcome[]): OutcomeShares {
  const total = outcomes.reduce((all, { probability }) => all + probability, 0);
  const found = landings(outcomes).map((one) => ({ ...one, probability: one.probability / total }));
  return sumOfShares(
    found.map(({ verdict, destination, translated, masqueraded, probability }) => {
      if (verdict !== "accept") return [verdict, probability];
      return [translated ? wayTo(destination, masqueraded) : UNTOUCHED, probability];
    }),
  );
}

/** iptables writes probabilities with eleven digits. */
const TOLERANCE = 1e-6;
/** By which part of it a share may be off: nftables mode draws evenly but for half a percent. */
const UNEVEN = 0.005;

export function sameWays(a: OutcomeShares, b: OutcomeShares): boolean {
  if (a.size !== b.size) return false;
  return [...a].every(([way, share]) => Math.abs((b.get(way) ?? -1) - share) < TOLERANCE + UNEVEN * share);
}

/** `10.144.1.5:8080 50 %, 10.144.2.6:8080 50 %` */
export function waysText(ways: OutcomeShares): string {
  if (ways.size === 1) return [...ways.keys()].join("");
  const shares = [...ways].sort(([a], [b]) => (a < b ? -1 : 1));
  return shares.map(([way, share]) => `${way} ${percent(share)}`).join(", ");
}

/** What becomes of a packet: all its ways, or why they are not known. */
export type Followed =
  | { readonly outcomes: readonly Outcome[] }
  /** @property error absent where no rule is the reason */
  | { readonly problem: string; readonly error?: TraceError };

/** Follows a packet through a kernel. Rules that cannot be decided are taken both ways. */
export function follow({ tracer, environment }: View, packet: Packet): Followed {
  try {
    const { outcomes, undecided } = tracer.explore(asSent(packet, environment), environment, { merged: true });
    const [first] = undecided;
    return first === undefined ? { outcomes } : { problem: first.problem.message, error: first.problem };
  } catch (error) {
    if (error instanceof RangeError) return { problem: error.message };
    throw error;
  }
}

/** What the node sends to an address that one of its own interfaces has, it sends from there. */
export function ownSource(source: string, to: string, { localAddresses = [] }: Environment): string {
  for (const own of localAddresses) if (own === to) return to;
  return source;
}

/** What the kernel of a node holds, as far as packets to services meet it. */
export interface KernelState {
  readonly ruleSet: RuleSet;
  /** In addition to those of iptables; absent: there are no others. */
  readonly nftables?: readonly NftTable[];
  readonly environment: Environment;
}

/** What a kernel held at one time, prepared for many packets. */
export interface View {
  readonly state: KernelState;
  readonly tracer: Tracer;
  readonly environment: Environment;
  /** The node's addresses. */
  readonly own: ReadonlySet<string>;
}

export function viewOf(state: KernelState): View {
  const { ruleSet, nftables = [], environment } = state;
  return {
    state,
    tracer: createTracer({ iptables: ruleSet, nftables }),
    environment,
    own: new Set(environment.localAddresses),
  };
}

/** How what becomes of a packet compares with what is wanted. */
export type Comparison =
  | { readonly kind: "same" }
  /** Only that rules outside a service proxy's chains masquerade it, as pod networks do. */
  | { readonly kind: "masqueraded"; readonly ways: OutcomeShares }
  | { readonly kind: "different"; readonly ways: OutcomeShares }
  /** It depends on what cannot be decided here. */
  | { readonly kind: "unknown"; readonly problem: string };

/**
 * Compares a packet's ways with those that are wanted. Rules that cannot be decided here make no difference where all
 * that they may do leads to the wanted ends; where only some of it does, the answer is "unknown", never "different".
 */
export function compared(followed: Followed, wanted: OutcomeShares): Comparison {
  if ("problem" in followed) return { kind: "unknown", problem: followed.problem };
  const { outcomes } = followed;
  const agrees = (some: readonly Outcome[]) => sameWays(tracedWays(some), wanted);
  const agreesButForOthers = (some: readonly Outcome[]) => agrees(some) || agrees(withoutOthersMasquerade(some));
  const open = assumptionsOf(outcomes);
  const cases = casesOf(outcomes, open.slice(0, MOST_OPEN));
  if (cases.every(agrees)) return { kind: "same" };
  const ways = tracedWays(outcomes);
  if (cases.every(agreesButForOthers)) return { kind: "masqueraded", ways };
  const [first] = open;
  const isOpen = first !== undefined && (open.length > MOST_OPEN || cases.some(agreesButForOthers));
  return isOpen ? { kind: "unknown", problem: `it depends on a rule: ${first.problem}` } : { kind: "different", ways };
}

function percent(share: number): string {
  return `${(share * 100).toFixed(share * 100 < 10 ? 1 : 0).replace(/\.0$/, "")} %`;
}

function wayTo(endpoint: string, masqueraded: boolean): string {
  return masqueraded ? `${endpoint} masqueraded` : endpoint;
}

function sumOfShares(shares: readonly (readonly [way: string, share: number])[]): OutcomeShares {
  const ways = new Map<string, number>();
  for (const [way, share] of shares) ways.set(way, (ways.get(way) ?? 0) + share);
  return ways;
}

function asSent(packet: Packet, environment: Environment): Packet {
  const source =
    packet.inInterface === undefined ? ownSource(packet.source, packet.destination, environment) : undefined;
  return source === undefined ? packet : { ...packet, source };
}

/** Each doubles the cases. */
const MOST_OPEN = 6;

/** The rules that cannot be decided, each once. */
function assumptionsOf(outcomes: readonly Outcome[]): readonly Assumption[] {
  return [...new Map(outcomes.flatMap(({ assumed = [] }) => assumed).map((one) => [ruleKey(one), one])).values()];
}

function ruleKey({ hook, table, chain, index }: Assumption): string {
  return `${hook} ${table} ${chain} ${index}`;
}

/** The outcomes for each way in which these assumptions may turn out. */
function casesOf(outcomes: readonly Outcome[], open: readonly Assumption[]): readonly (readonly Outcome[])[] {
  const keys = open.map(ruleKey);
  const cases = Array.from({ length: 2 ** keys.length }, (_, bits) =>
    outcomes.filter(({ assumed = [] }) =>
      assumed.every((one) => {
        const at = keys.indexOf(ruleKey(one));
        return at < 0 || one.matched === ((bits & (1 << at)) !== 0);
      }),
    ),
  );
  return cases.filter((some) => some.length > 0);
}

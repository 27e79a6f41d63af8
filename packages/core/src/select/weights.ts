/** How the weights of EndpointSlices divide the connections of a service port among its endpoints. */

import { socketText } from "@fairlead/base";
import type { ModeSemantics } from "../backend.ts";
import { TURN } from "../data.ts";
import type { EndpointSlice, SliceEndpoint } from "../objects.ts";
import type { PlanEndpoint, SetWeights } from "../plan.ts";
import { type Candidate, type CandidateQuery, preference } from "./candidates.ts";

/** What the weights of a service port's slices come to. */
interface SliceWeights {
  /** Of a set that was chosen; undefined: its endpoints weigh alike. Yields where there are many. */
  of(set: readonly PlanEndpoint[]): Generator<void, SetWeights | undefined>;
}

/**
 * A slice's share is split evenly among those of its endpoints that a set has, and goes to the other slices where the
 * set has none. An endpoint that several slices have gets a part of each. Yields where there are many.
 *
 * @param kept the candidates of the query
 * @param can of the mode
 * @returns undefined: no slice weighs anything, as with most services
 */
export function* sliceWeights(
  slices: readonly EndpointSlice[],
  query: CandidateQuery,
  kept: readonly Candidate[],
  can: ModeSemantics["weights"],
): Generator<void, SliceWeights | undefined> {
  if (can === undefined || !slices.some(({ family, weight = 0 }) => family === query.family && weight > 0)) return;
  const own = slices.filter(({ family, weight }) => family === query.family && weight !== 0);
  const winners = new Map<string, SliceEndpoint>();
  for (const { key, endpoint } of kept) if (winners.set(key, endpoint).size % TURN === 0) yield;
  const shares: Share[] = [];
  const plain = new Set<string>();
  const turns = new Turns();
  let refused = 0;
  for (const slice of own) {
    const ports = slice.ports.filter(({ name, protocol }) => name === query.name && protocol === query.protocol);
    if (slice.refused && can === "and refusals" && ports.length > 0) refused += slice.weight ?? 0;
    const keys = ports.flatMap(({ port }) => keysOf(slice, port, winners));
    if (slice.weight === undefined) for (const key of keys) plain.add(key);
    else shares.push({ weight: slice.weight, keys });
    if (turns.isOver(keys.length)) yield;
  }
  for (const key of plain) shares.push({ weight: 1, keys: [key] });
  return { of: (set) => weightsOf(set, shares, refused) };
}

/** A slice's weight, and the keys of its endpoints as `Candidate` has them; without a weight each is by itself. */
interface Share {
  readonly weight: number;
  readonly keys: readonly string[];
}

/** Says when so many endpoints were looked at that others are to get their turn. */
class Turns {
  #seen = 0;

  isOver(seen: number): boolean {
    this.#seen += seen;
    if (this.#seen < TURN) return false;
    this.#seen = 0;
    return true;
  }
}

/** A pod that goes does not count for the address that another one has by now. */
function keysOf({ endpoints }: EndpointSlice, port: number, winners: ReadonlyMap<string, SliceEndpoint>) {
  return endpoints.flatMap((endpoint) => {
    const key = socketText(endpoint.address, port);
    const winner = winners.get(key);
    return winner !== undefined && preference(winner) === preference(endpoint) ? [key] : [];
  });
}

/** Beyond this sum weights are rounded: nftables mode draws one of so many numbers. */
const MOST = 65_536;
/** Numbers of endpoints whose shares are exact have a common multiple up to this. */
const MOST_PARTS = 720_720;

function* weightsOf(
  set: readonly PlanEndpoint[],
  shares: readonly Share[],
  refused: number,
): Generator<void, SetWeights | undefined> {
  if (set.length === 0) return undefined;
  const places = new Map<string, number>();
  for (const [at, { address, port }] of set.entries())
    if (places.set(socketText(address, port), at).size % TURN === 0) yield;
  const members: { readonly weight: number; readonly at: readonly number[] }[] = [];
  const turns = new Turns();
  for (const { weight, keys } of shares) {
    const at = keys.flatMap((key) => places.get(key) ?? []);
    if (at.length > 0) members.push({ weight, at });
    if (turns.isOver(keys.length)) yield;
  }
  const parts = members.reduce((all, { at }) => common(all, at.length), 1);
  const weights = new Array<number>(set.length).fill(0);
  for (const { weight, at } of members) {
    const each = Math.max(1, Math.round((weight * parts) / at.length));
    for (const place of at) weights[place] = (weights[place] ?? 0) + each;
  }
  yield;
  const [rejected = 0, ...endpoints] = reduced([refused * parts, ...weights]);
  if (rejected > 0) return { endpoints, refused: rejected };
  return endpoints.every((weight) => weight === endpoints[0]) ? undefined : { endpoints };
}

function common(a: number, b: number): number {
  return Math.min((a / divisor(a, b)) * b, MOST_PARTS);
}

/** In the smallest whole numbers; what is not 0 stays so. */
function reduced(weights: readonly number[]): readonly number[] {
  const smallest = dividedBy(weights.reduce(divisor, 0), weights);
  const sum = smallest.reduce((all, one) => all + one, 0);
  if (sum <= MOST) return smallest;
  const rounded = smallest.map((one) => (one === 0 ? 0 : Math.max(1, Math.round((one * MOST) / sum))));
  return dividedBy(rounded.reduce(divisor, 0), rounded);
}

function dividedBy(by: number, weights: readonly number[]): readonly number[] {
  return by === 1 ? weights : weights.map((one) => one / by);
}

function divisor(a: number, b: number): number {
  return b === 0 ? a : divisor(b, a % b);
}

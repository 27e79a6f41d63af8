/** Where a Service's endpoints are kept: its class, its slots, and the numbers that clients are remembered by. */

import type { EndpointSetName, PlanEndpoint, ServicePortGroup, SetWeights } from "@fairlead/core";

/** Where the endpoints of one set of a service port stand: in which class, and in which slots. */
export interface Pool {
  readonly size: number;
  /** Without a hole; the plan's own list, until endpoints come and go. */
  readonly slots: readonly PlanEndpoint[];
  /** The slots are a table into which a hash of the client's address leads; each endpoint has many. */
  readonly hashed?: true;
  /** Of the slots, which are in no class: packets draw from a map of the set's own. */
  readonly weights?: SetWeights;
}

export interface Placement {
  readonly group: ServicePortGroup;
  readonly cluster?: Pool;
  readonly local?: Pool;
  /** Of a group with affinity that has endpoints. */
  readonly memory?: Memory;
}

export type PlacedBefore = Partial<Pick<Placement, EndpointSetName | "memory">>;

/** Gives the endpoints of a group their places; those that stay keep theirs. */
export function place(group: ServicePortGroup, before: PlacedBefore | undefined, numbers: Numbers): Placement {
  const cluster = placeSet(group, "cluster", before?.cluster);
  const local = placeSet(group, "local", before?.local);
  const placed = { group, ...(cluster && { cluster }), ...(local && { local }) };
  if (group.affinitySeconds === undefined || (cluster === undefined && local === undefined)) return placed;
  const endpoints = [...(cluster?.slots ?? []), ...(local?.slots ?? [])];
  return { ...placed, memory: memoryOf(endpoints, before?.memory, numbers) };
}

/**
 * Size classes: services whose endpoints are about as many share a chain, and a map with a slot for each endpoint. A
 * chain draws a slot of `size`; where it is empty, it draws again.
 *
 * Sizes are powers of two, and half as much more: 2, 3, 4, 6, 8, 12, 16, 24, …
 */
export function sizeAbove(count: number): number {
  const power = 2 ** Math.floor(Math.log2(Math.max(count, 1)));
  return [power, power * 1.5, power * 2].find((size) => size > count && Number.isInteger(size)) ?? 2 * power;
}

/** The fewest endpoints of a class, whose slots are all filled: those of the class two below. */
export function fewestOf(size: number): number {
  return Math.floor(size / 2);
}

/**
 * The class of a service: it enters one with room to grow, and stays while it fits, so that most changes of endpoints
 * change no rule and no chain.
 *
 * @param count endpoints, at least one
 * @param now the class that it is in, if it is in one
 */
export function sizeFor(count: number, now?: number): number {
  return now !== undefined && fewestOf(now) <= count && count <= now ? now : sizeAbove(count);
}

/** By how much of it an endpoint's chance may differ from 1/n. */
const UNEVEN = 0.005;

/** The fewest draws after which no endpoint's chance differs too much, for any number of endpoints of the class. */
export function drawsOf(size: number): number {
  let draws = 1;
  while (unevenness(size, draws) > UNEVEN) draws++;
  return draws;
}

/** What the rules of a class's chain draw of, one after the other; the last also catches a slot that went meanwhile. */
export function moduliOf(size: number): readonly number[] {
  const fewest = fewestOf(size);
  const draws: number[] = Array.from({ length: drawsOf(size) }, () => size);
  return fewest === 1 ? [...draws, 1] : [...draws, fewest, 1];
}

/**
 * Sizes of tables: primes, so that every step between 1 and the size before it reaches all slots. Few and far apart,
 * since another size sends nearly all clients elsewhere.
 */
const SIZES = [1_021, 8_191, 65_521] as const;

/** Slots that an endpoint should have at least: its share is one more or less, so within 2 % of even. */
const SLOTS_EACH = 50;

/** As many slots as a table of so many endpoints has; the largest size is for all that are more. */
export function maglevSize(endpoints: number): number {
  return SIZES.find((size) => size >= SLOTS_EACH * endpoints) ?? SIZES[2];
}

/**
 * Maglev's look-up table (Eisenbud and others, NSDI 2016, section 3.4): endpoints take turns, and each takes the first
 * slot of a sequence of its own that is still free. The same endpoints give the same table on every node; one that
 * comes or goes moves few slots of the others. One that weighs less passes some of its turns.
 *
 * @param endpoints in one order everywhere, at least one
 */
export function maglevTable(
  endpoints: readonly PlanEndpoint[],
  size: number,
  weights: readonly number[] = [],
): readonly PlanEndpoint[] {
  const sequences = endpoints.map((endpoint) => sequenceOf(`${endpoint.address} ${endpoint.port}`, size));
  const slots: (PlanEndpoint | undefined)[] = new Array(size).fill(undefined);
  const most = weights.reduce((one, other) => Math.max(one, other), 1);
  // Each has its first turn at once.
  const due = endpoints.map((_, at) => most - (weights[at] ?? most));
  for (let filled = 0; filled < size; ) {
    for (const [index, sequence] of sequences.entries()) {
      if (filled === size) break;
      const sum = (due[index] ?? 0) + (weights[index] ?? most);
      due[index] = sum < most ? sum : sum - most;
      if (sum < most) continue;
      while (slots[sequence.next] !== undefined) sequence.next = (sequence.next + sequence.step) % size;
      slots[sequence.next] = endpoints[index];
      filled++;
    }
  }
  return slots.filter((endpoint) => endpoint !== undefined);
}

export function sameEndpoint(a: PlanEndpoint | undefined, b: PlanEndpoint | undefined): boolean {
  return a === b || (a !== undefined && b !== undefined && a.address === b.address && a.port === b.port);
}

/**
 * Endpoints in slots without a hole. Who stays keeps the slot; new ones take those that were freed; holes that are left
 * are filled from the end: as few slots change as can be.
 */
export function denseSlots(before: readonly PlanEndpoint[], wanted: readonly PlanEndpoint[]): readonly PlanEndpoint[] {
  if (before.length === 0) return wanted;
  if (before.length === wanted.length && wanted.every((one, slot) => sameEndpoint(one, before[slot]))) return wanted;
  const kept = keptSlots(before, wanted);
  const dense: (PlanEndpoint | undefined)[] = [...kept];
  for (let hole = dense.indexOf(undefined); hole !== -1; hole = dense.indexOf(undefined, hole)) {
    const last = dense.pop();
    if (hole < dense.length) dense[hole] = last;
  }
  return dense.filter((endpoint) => endpoint !== undefined);
}

/** Distinguishes endpoints of a service port. */
export function endpointName({ address, port }: PlanEndpoint): string {
  return `${address} ${port}`;
}

/**
 * The numbers under which clients of a service port with affinity are remembered. An endpoint that goes and comes back
 * has another one, and so has a service: what is remembered of what was before leads nowhere.
 */
export interface Memory {
  readonly number: number;
  /** Of its endpoints, by `endpointName`. */
  readonly endpoints: ReadonlyMap<string, number>;
}

/** Sets have 32 bits for them. A table that is made anew begins with 1 again, long before they are used up. */
const LAST = 2 ** 31;

/** Numbers for everything of one table that clients are remembered with: none is given out twice. */
export class Numbers {
  #last = 0;

  next(): number {
    this.#last += 1;
    return this.#last;
  }

  get usedUp(): boolean {
    return this.#last > LAST;
  }
}

/**
 * What a service port is known by where its id is not: a renamed port is the same one, and so is what another agent has
 * left in the kernel.
 */
export function identityOf({ service, protocol, frontends: [first] }: ServicePortGroup): string {
  return `${service} ${protocol} ${first?.kind} ${first?.address ?? ""} ${first?.port}`;
}

function placeSet(group: ServicePortGroup, set: EndpointSetName, before: Pool | undefined): Pool | undefined {
  const endpoints = group[set];
  if (endpoints.length === 0 || !isUsed(group, set)) return undefined;
  const weights = group.weights?.[set];
  if (group.balance === "source-hash" && group.affinitySeconds === undefined)
    return placeByHash(endpoints, weights?.endpoints);
  if (weights !== undefined) return { size: 0, slots: endpoints, weights };
  return placeByDraw(endpoints, before?.hashed || before?.weights ? undefined : before);
}

function placeByHash(endpoints: readonly PlanEndpoint[], weights: readonly number[] | undefined): Pool {
  const size = maglevSize(endpoints.length);
  return { size, slots: maglevTable(endpoints, size, weights), hashed: true };
}

function placeByDraw(endpoints: readonly PlanEndpoint[], before: Pool | undefined): Pool {
  return { size: sizeFor(endpoints.length, before?.size), slots: denseSlots(before?.slots ?? [], endpoints) };
}

function isUsed({ frontends }: ServicePortGroup, set: EndpointSetName): boolean {
  return frontends.some(({ treatments: { pod, node, outside } }) =>
    [pod, node, outside].some((treatment) => treatment.verdict === "proxy" && treatment.set === set),
  );
}

/**
 * How far an endpoint's chance is from 1/n at most, as a part of it. All draws missed with the chance ((size − n) /
 * size) ^ draws; then the draw among the slots that are always filled favors these.
 */
function unevenness(size: number, draws: number): number {
  const fewest = fewestOf(size);
  let worst = 0;
  for (let count = fewest + 1; count <= size; count++) {
    const missed = (1 - count / size) ** draws;
    worst = Math.max(worst, missed, missed * (count / fewest - 1));
  }
  return worst;
}

interface Sequence {
  next: number;
  readonly step: number;
}

function sequenceOf(name: string, size: number): Sequence {
  return { next: hash(name, 1) % size, step: (hash(name, 2) % (size - 1)) + 1 };
}

/** FNV-1a with MurmurHash3's finalizer, 32 bits: names that differ in one digit have nothing in common. */
function hash(text: string, seed: number): number {
  let bits = 0x811c9dc5 ^ seed;
  for (let at = 0; at < text.length; at++) bits = Math.imul(bits ^ text.charCodeAt(at), 0x01000193);
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}

/** Endpoints by their slot; undefined: it is empty. */
type Slots = readonly (PlanEndpoint | undefined)[];

/** Who stays keeps the slot; new ones take the first that are free. */
function keptSlots(before: readonly PlanEndpoint[], wanted: readonly PlanEndpoint[]): Slots {
  const missing = new Map(wanted.map((endpoint) => [endpointName(endpoint), endpoint]));
  const slots: (PlanEndpoint | undefined)[] = before.map((endpoint) => {
    const name = endpointName(endpoint);
    const stays = missing.get(name);
    missing.delete(name);
    return stays;
  });
  let at = 0;
  for (const endpoint of missing.values()) {
    while (slots[at] !== undefined) at++;
    slots[at] = endpoint;
  }
  return slots;
}

/** Who stays keeps the number; without a change the memory is the same object. */
function memoryOf(endpoints: Iterable<PlanEndpoint>, before: Memory | undefined, numbers: Numbers): Memory {
  const made = new Map<string, number>();
  let isSame = before !== undefined;
  for (const endpoint of endpoints) {
    const name = endpointName(endpoint);
    if (made.has(name)) continue;
    const known = before?.endpoints.get(name);
    isSame &&= known !== undefined;
    made.set(name, known ?? numbers.next());
  }
  if (before !== undefined && isSame && made.size === before.endpoints.size) return before;
  return { number: before?.number ?? numbers.next(), endpoints: made };
}

/** Session affinity: chains and sets of clients, and their changes. */

import type { EndpointSetName, PlanEndpoint, Protocol, ServicePortGroup } from "@fairlead/core";
import { type Expression, type Hex, hostHex, type NftChain, type NftRule, statements } from "@fairlead/netfilter/nft";
import type { PlanContext } from "./context.ts";
import { addressType, type EmptySet, endpointValue, protocolKey, rememberedValue, slotKey } from "./keys.ts";
import { endpointName, type Memory, moduliOf, type Placement, type Pool } from "./placement.ts";
import {
  type ElementChanges,
  hashedNeed,
  keyTypes,
  type Need,
  type PoolChain,
  type PoolKind,
  poolMapName,
  poolName,
  poolNeed,
  STEP,
  type Structure,
} from "./pools.ts";
import { rememberedNeed, weightedNeed } from "./weighted.ts";

const knownChain = (prefix: string, timeout: number) => `${prefix}sticky-${timeout}`;
const goneChain = (prefix: string, timeout: number) => `${prefix}sticky-gone-${timeout}`;

/** Where a client draws that is not known. */
interface Drawn {
  /** Behind the timeout in the chain's name. */
  readonly name: string | number;
  readonly needs: readonly Need[];
  /** What draws, where it is looked up, and what is said of it, rule by rule. */
  readonly draws: readonly {
    readonly load: (to: number) => Expression;
    readonly set: string;
    /** It is drawn from endpoints of all service ports. */
    readonly shared: boolean;
    readonly comment: string;
  }[];
  /** Where clients go that cannot be remembered; undefined: what draws nothing is refused. */
  readonly chain: string | undefined;
}

function fromClass(kind: PoolKind, size: number): Drawn {
  const draws = moduliOf(size).map((modulus) => ({
    load: (to: number): Expression => ({ kind: "numgen", modulus, to }),
    set: slotMap(kind.set),
    shared: true,
    comment: `one of ${modulus} slots by chance`,
  }));
  return { name: size, needs: [poolNeed(kind, size)], draws, chain: poolName(kind, size) };
}

function byWeight({ set }: PoolKind, group: ServicePortGroup): Drawn {
  const need = weightedNeed(group, set);
  const remembered = rememberedNeed(need);
  const load = (to: number): Expression => ({ kind: "meta", key: "random", to });
  const draws = [{ load, set: remembered.id, shared: false, comment: "one by chance and weight" }];
  const refuses = group.weights?.[set]?.refused !== undefined;
  return { name: need.id, needs: [need, remembered], draws, chain: refuses ? undefined : need.id };
}

/** @returns the chain that leads to endpoints for a timeout, and what has to be there for it */
function stickyChain(kind: PoolKind, drawn: Drawn, timeout: number): PoolChain {
  const chain = `${knownChain(kind.prefix, timeout)}-${drawn.name}${drawn.chain === undefined ? "/refusing" : ""}`;
  const known = knownChain(kind.prefix, timeout);
  const gone = goneChain(kind.prefix, timeout);
  return {
    chain,
    needs: [
      ...drawn.needs,
      clientsNeed,
      frontendsNeed(kind),
      endpointsNeed(kind),
      { id: known, make: (context) => chainOnly(known, knownRules(kind, timeout, context)) },
      { id: gone, make: (context) => chainOnly(gone, goneRules(kind, timeout, context)) },
      { id: chain, make: (context) => chainOnly(chain, drawRules(kind, timeout, drawn, context)) },
    ],
  };
}

/** `service port . client`: `0 . service port . endpoint`, by their numbers. */
export const CLIENTS = "sticky-clients";

/**
 * The most clients that are remembered at once, of all services together. The kernel sets a table of pointers up for
 * them when the first service with affinity comes: 2 MiB for so many. What it takes to list them grows with the square.
 */
export const CLIENTS_SIZE = 131_072;

/** A frontend: `0 . service port`. */
export function frontendsMap({ prefix }: Pick<PoolKind, "prefix" | "set">): string {
  return prefix.startsWith("nodeport-") ? "sticky-nodeports" : "sticky-ips";
}

/** `service port . endpoint . protocol`: the address and port of an endpoint that packets may go to. */
export function memberMap(set: EndpointSetName): string {
  return set === "local" ? "local-sticky-endpoints" : "sticky-endpoints";
}

/** The elements by which what clients of a group are led to differs from what it was. A step for many endpoints. */
export function* stickyChanges(
  before: Placement | undefined,
  after: Placement | undefined,
  to: ElementChanges,
): Generator<void> {
  for (const set of ["cluster", "local"] as const) {
    const [was, is] = [stickyPool(before, set), stickyPool(after, set)];
    if (was?.pool.slots === is?.pool.slots && was?.memory === is?.memory) continue;
    yield* changesOf(slotElements(was), slotElements(is), slotMap(set), to);
    yield* changesOf(endpointElements(was), endpointElements(is), memberMap(set), to);
  }
}

/**
 * Services that remember their clients: a client is remembered with its endpoint, for the service port, whichever of
 * its frontends it came to. Both have numbers (`Memory`), so that nothing that is gone is taken for what comes later.
 *
 * A packet looks up the number of its frontend, with it and its sender's address what is remembered, and with that the
 * endpoint; where there is none, the rule ends. nft has no words for looking up what was looked up, and aborts where it
 * lists that. So maps give one value more than is needed, first: nft takes only the register where it stands for looked
 * up, and prints for the others what was loaded there before, a packet's mark. What it prints never finds anything: a
 * mark would have to be the number of a service port and of an endpoint, and no number is both. (Of keys for packets to
 * change nft 1.0.6 takes none with a part that begins behind the 16th byte: the address comes last.)
 */
const REGISTERS = {
  ip: { number: 1, client: 2, frontend: 4, remembered: 8 },
  ip6: { number: 1, client: 2, frontend: 6, remembered: 12 },
} as const;

/** Packets fill it, those of all service ports; each element has a timeout of its own. */
const clientsNeed: Need = {
  id: CLIENTS,
  make: ({ family }) =>
    setsOnly({
      name: CLIENTS,
      key: ["mark", addressType(family)],
      data: ["mark", "mark", "mark"],
      flags: ["timeout", "dynamic"],
      size: CLIENTS_SIZE,
      comment: "endpoints of clients with session affinity",
    }),
};

function frontendsNeed(kind: PoolKind): Need {
  const name = frontendsMap(kind);
  const make = ({ family }: PlanContext) =>
    setsOnly({ name, key: keyTypes(kind, family), data: ["mark", "mark"], flags: [] });
  return { id: name, make };
}

function endpointsNeed({ set }: PoolKind): Need {
  const [slots, members] = [slotMap(set), memberMap(set)];
  const make = ({ family }: PlanContext) =>
    setsOnly(
      { name: slots, key: ["mark", "mark"], data: ["mark", "mark", "mark"], flags: [] },
      { name: members, key: ["mark", "mark", "inet_proto"], data: [addressType(family), "inet_service"], flags: [] },
    );
  return { id: members, make };
}

/** A client that is remembered goes to its endpoint; where that is gone, the chain returns. */
function knownRules(kind: PoolKind, timeout: number, { family }: PlanContext): readonly NftRule[] {
  const { number, frontend, remembered } = REGISTERS[family];
  return [
    {
      expressions: [
        ...rememberedEndpoint(kind, family),
        statements.load(family, "l4proto", remembered + 3),
        { kind: "lookup", set: memberMap(kind.set), from: remembered + 1, to: frontend },
        { kind: "dynset", set: CLIENTS, operation: "update", from: number, value: remembered, timeout: timeout * 1000 },
        { kind: "nat", family, address: frontend, port: frontend + (family === "ip" ? 1 : 4) },
      ],
      comment: "the client's endpoint, if there is one",
    },
  ];
}

/**
 * A client that is remembered, but was not found by the chain before: it is forgotten where its endpoint is gone. Asked
 * once more, since another processor may have added the client between the two look-ups: what is forgotten then would
 * be an endpoint that packets go to already.
 */
function goneRules(kind: PoolKind, timeout: number, { family }: PlanContext): readonly NftRule[] {
  const { number, remembered } = REGISTERS[family];
  const forget: Expression = { kind: "dynset", set: CLIENTS, operation: "delete", from: number, value: remembered };
  return [
    { expressions: statements.jump(knownChain(kind.prefix, timeout)) },
    { expressions: [...rememberedEndpoint(kind, family), forget], comment: "the client's endpoint is gone" },
  ];
}

/**
 * The chain of a class: a client that is not known draws an endpoint, which is remembered before it counts: so first
 * packets that come at the same time go the same way. Where no more clients can be remembered, all are served as if the
 * service remembered none.
 */
function drawRules(kind: PoolKind, timeout: number, drawn: Drawn, { family }: PlanContext): readonly NftRule[] {
  const { client, number, remembered } = REGISTERS[family];
  const toKnown = statements.jump(knownChain(kind.prefix, timeout));
  const toGone = statements.jump(goneChain(kind.prefix, timeout));
  const draws = drawn.draws.map(
    ({ load, set, shared, comment }): NftRule => ({
      expressions: [
        ...frontendNumber(kind, family),
        load(client),
        { kind: "lookup", set, from: shared ? number : client, to: remembered },
        asMark(remembered),
        statements.load(family, "saddr", client),
        { kind: "dynset", set: CLIENTS, operation: "add", from: number, value: remembered, timeout: timeout * 1000 },
        ...toKnown,
      ],
      comment,
    }),
  );
  return [
    { expressions: toKnown },
    { expressions: [...rememberedEndpoint(kind, family), ...toGone] },
    ...draws,
    ...(drawn.chain === undefined ? [] : [{ expressions: statements.goTo(drawn.chain) }]),
  ];
}

/** Leaves what is remembered of the client; where nothing is, the rule ends. */
function rememberedEndpoint(kind: PoolKind, family: PlanContext["family"]): readonly Expression[] {
  const { number, client, remembered } = REGISTERS[family];
  return [
    ...frontendNumber(kind, family),
    statements.load(family, "saddr", client),
    { kind: "lookup", set: CLIENTS, from: number, to: remembered },
    asMark(remembered),
  ];
}

/** Leaves the number of the service port that a packet's frontend is of. */
function frontendNumber({ fields, prefix, set }: PoolKind, family: PlanContext["family"]): readonly Expression[] {
  const { number, frontend, remembered } = REGISTERS[family];
  return [
    ...[number, remembered + 1, remembered + 2].map(asMark),
    ...statements.loadKey(family, fields, frontend).expressions,
    { kind: "lookup", set: frontendsMap({ prefix, set }), from: frontend, to: number - 1 },
  ];
}

/** A register that nft prints as the packet's mark. */
function asMark(to: number): Expression {
  return { kind: "meta", key: "mark", to };
}

function setsOnly(...sets: readonly EmptySet[]): Structure {
  return { sets, chains: [] };
}

function chainOnly(name: string, rules: NftChain["rules"]): Structure {
  return { sets: [], chains: [{ name, rules }] };
}

/** `service port . slot`: `0 . service port . endpoint`, to draw from; slots are dense. */
function slotMap(set: EndpointSetName): string {
  return set === "local" ? "local-sticky-slots" : "sticky-slots";
}

/** The endpoints of a set of a service port with affinity, which stand under its number, whatever its frontends are. */
interface StickyPool {
  readonly pool: Pool;
  readonly memory: Memory;
  readonly protocol: Protocol;
}

function stickyPool(placement: Placement | undefined, set: EndpointSetName): StickyPool | undefined {
  const { memory, group, [set]: pool } = placement ?? {};
  return memory && pool && group && { pool, memory, protocol: group.protocol };
}

/** Two of them differ where their marks do. */
interface Made {
  readonly key: Hex;
  readonly mark: number;
  readonly value: () => Hex;
}

/** To draw from. */
function* slotElements(sticky: StickyPool | undefined): Generator<Made> {
  if (sticky === undefined || sticky.pool.weights !== undefined) return;
  const number = hostHex(sticky.memory.number);
  for (const [slot, endpoint] of sticky.pool.slots.entries()) {
    const mark = numberOf(endpoint, sticky);
    yield { key: number + slotKey(slot), mark, value: () => rememberedValue(number, mark) };
  }
}

/** To go to. */
function* endpointElements(sticky: StickyPool | undefined): Generator<Made> {
  if (sticky === undefined) return;
  const [number, protocol] = [hostHex(sticky.memory.number), protocolKey(sticky.protocol)];
  for (const endpoint of sticky.pool.slots) {
    const mark = numberOf(endpoint, sticky);
    yield { key: number + hostHex(mark) + protocol, mark, value: () => endpointValue(endpoint) };
  }
}

function numberOf(endpoint: PlanEndpoint, { memory }: StickyPool): number {
  return memory.endpoints.get(endpointName(endpoint)) ?? 0;
}

function* changesOf(before: Iterable<Made>, after: Iterable<Made>, set: string, to: ElementChanges): Generator<void> {
  const was = new Map<Hex, number>();
  let steps = 0;
  for (const { key, mark } of before) {
    was.set(key, mark);
    if (++steps % STEP === 0) yield;
  }
  for (const { key, mark, value } of after) {
    if (++steps % STEP === 0) yield;
    const known = was.get(key);
    was.delete(key);
    if (known === mark) continue;
    if (known !== undefined) to.delete(set, key);
    to.add(set, { key, value: value() });
  }
  for (const key of was.keys()) {
    to.delete(set, key);
    if (++steps % STEP === 0) yield;
  }
}

/** How a frontend's packets get to a pool: by a hash of the client, by what is remembered of it, or by chance. */
export function poolChain(kind: PoolKind, set: EndpointSetName, pool: Pool, group: ServicePortGroup): PoolChain {
  const { size, hashed, weights } = pool;
  const { affinitySeconds } = group;
  if (affinitySeconds !== undefined)
    return stickyChain(kind, weights ? byWeight(kind, group) : fromClass(kind, size), affinitySeconds);
  if (weights !== undefined) {
    const need = weightedNeed(group, set);
    return { chain: need.id, needs: [need] };
  }
  return { chain: poolMapName(kind, pool), needs: [hashed ? hashedNeed(kind, size) : poolNeed(kind, size)] };
}

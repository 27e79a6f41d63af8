/** Where clients of an earlier table are taken from when the table is written anew. */

import type { PlanEndpoint, ServicePortGroup } from "@fairlead/core";
import { type Hex, hostHex, type NftSet, type SetElement } from "@fairlead/netfilter/nft";
import { commentText, kubeProxyAffinitySet } from "./context.ts";
import { addressKey, endpointValue, nodePortKey, rememberedValue } from "./keys.ts";
import { endpointName, type Memory, type PlacedBefore, type Placement } from "./placement.ts";
import { POOL_KINDS } from "./pools.ts";
import { CLIENTS, CLIENTS_SIZE, frontendsMap, memberMap } from "./sticky.ts";
import type { Before } from "./write-table.ts";

/** Whether a set holds clients, or says which endpoint they belong to: this mode's own, and kube-proxy's. */
export function remembers({ name }: Pick<NftSet, "name">): boolean {
  return isOwn(name) || isKubeProxys(name);
}

/**
 * Affinity over a table that is made anew: clients are remembered as long as they would have been, those of endpoints
 * that are still there.
 */
export class Remembered implements Before {
  readonly #sets: ReadonlyMap<string, NftSet>;
  readonly #placements: ReadonlyMap<string, Placement>;

  /**
   * @param sets of the table that is there
   * @param placements where it is known what was written last
   */
  constructor(sets: ReadonlyMap<string, NftSet>, placements: ReadonlyMap<string, Placement> = new Map()) {
    this.#sets = sets;
    this.#placements = placements;
  }

  /** The table is numbered anew. */
  placed({ id }: ServicePortGroup): PlacedBefore | undefined {
    const { memory: _, ...placed } = this.#placements.get(id) ?? {};
    return placed;
  }

  /**
   * A client that several sets have goes where it was last. Where kube-proxy has left sets, it was the last to serve:
   * it removes none of this mode's, and this mode all of its.
   */
  *clients(placements: ReadonlyMap<string, Placement>): Generator<SetElement | undefined> {
    const found = new Map<Hex, SetElement>();
    for (const source of [kubeProxyClients, ownClients]) {
      const latest = new Map<Hex, SetElement>();
      for (const known of source(this.#sets, placements)) {
        const element = known && elementOf(known);
        if (element !== undefined && !found.has(element.key)) keepLater(latest, element);
        yield undefined;
      }
      for (const [key, element] of latest) {
        if (found.size < CLIENTS_SIZE) found.set(key, element);
      }
    }
    yield* found.values();
  }
}

function keepLater(latest: Map<Hex, SetElement>, element: SetElement): void {
  const before = latest.get(element.key);
  if ((before?.expires ?? 0) < (element.expires ?? 0)) latest.set(element.key, element);
}

/** A client that was remembered, with an endpoint that it may still have. */
interface Known {
  readonly client: Hex;
  readonly memory: Memory;
  readonly endpoint: number;
  readonly affinitySeconds: number;
  /** How long it is remembered yet, milliseconds. */
  readonly expires: number;
}

/** @returns undefined: it is remembered no longer */
function elementOf({ client, memory, endpoint, affinitySeconds, expires }: Known): SetElement | undefined {
  const timeout = affinitySeconds * 1000;
  const left = Math.min(expires, timeout);
  if (left <= 0) return undefined;
  const number = hostHex(memory.number);
  return { key: number + client, value: rememberedValue(number, endpoint), timeout, expires: left };
}

/** A service port with affinity, as clients of before find it. */
interface Sticky extends Pick<Known, "memory" | "affinitySeconds"> {
  readonly placement: Placement;
}

/** What remembers clients; a step for each. */
function* stickyOf(placements: Iterable<Placement>): Generator<Sticky> {
  for (const placement of placements) {
    const { memory, group } = placement;
    if (memory === undefined || group.affinitySeconds === undefined) continue;
    yield { placement, memory, affinitySeconds: group.affinitySeconds };
  }
}

/** Its endpoints, of both sets, each once. */
function* endpointsOf({
  placement: { cluster, local },
  memory,
}: Sticky): Generator<readonly [endpoint: PlanEndpoint, number: number]> {
  const seen = new Set<number>();
  for (const endpoint of [...(cluster?.slots ?? []), ...(local?.slots ?? [])]) {
    const number = memory.endpoints.get(endpointName(endpoint));
    if (number === undefined || seen.has(number)) continue;
    seen.add(number);
    yield [endpoint, number];
  }
}

/** The same, as sets have endpoints. */
function numbersByValue(sticky: Sticky): ReadonlyMap<Hex, number> {
  return new Map(Array.from(endpointsOf(sticky), ([endpoint, number]) => [endpointValue(endpoint), number]));
}

const MEMBERS = [memberMap("cluster"), memberMap("local")];
const FRONTENDS = [POOL_KINDS.address, POOL_KINDS.nodePort].map(({ cluster }) => frontendsMap(cluster));
const NAMES: ReadonlySet<string> = new Set([CLIENTS, ...MEMBERS, ...FRONTENDS]);

function isOwn(name: string): boolean {
  return NAMES.has(name);
}

/** Digits of a number in a key or a value. */
const NUMBER = hostHex(0).length;

/** Clients as a table of this mode has them, by the numbers that it had. */
function* ownClients(
  sets: ReadonlyMap<string, NftSet>,
  placements: ReadonlyMap<string, Placement>,
): Generator<Known | undefined> {
  const clients = sets.get(CLIENTS);
  if (clients === undefined || clients.elements.size === 0) return;
  const known = yield* knownNumbers(sets, placements);
  for (const { key, value, expires = 0 } of clients.elements.values()) {
    const found = typeof value === "string" ? known.get(value.slice(NUMBER)) : undefined;
    yield found && { ...found, client: key.slice(NUMBER), expires };
  }
}

type Endpoint = Omit<Known, "client" | "expires">;

/** By `service port . endpoint` in the numbers of before. A step for each element. */
function* knownNumbers(
  sets: ReadonlyMap<string, NftSet>,
  placements: ReadonlyMap<string, Placement>,
): Generator<undefined, ReadonlyMap<Hex, Endpoint>> {
  const ports = new Map<Hex, Sticky & { readonly endpoints: ReadonlyMap<Hex, number> }>();
  for (const sticky of stickyOf(placements.values())) {
    yield undefined;
    const number = numberBefore(sticky, sets);
    if (number !== undefined) ports.set(number, { ...sticky, endpoints: numbersByValue(sticky) });
  }
  const known = new Map<Hex, Endpoint>();
  for (const name of MEMBERS) {
    for (const { key, value } of sets.get(name)?.elements.values() ?? []) {
      yield undefined;
      const port = ports.get(key.slice(0, NUMBER));
      const endpoint = typeof value === "string" ? port?.endpoints.get(value) : undefined;
      if (port !== undefined && endpoint !== undefined) known.set(key.slice(0, 2 * NUMBER), { ...port, endpoint });
    }
  }
  return known;
}

/** It is the same service port where the first frontend has a number, and says that it is of the same service. */
function numberBefore({ placement: { group } }: Sticky, sets: ReadonlyMap<string, NftSet>): Hex | undefined {
  const [first] = group.frontends;
  if (first === undefined) return undefined;
  const { address, port } = first;
  const { cluster } = address === undefined ? POOL_KINDS.nodePort : POOL_KINDS.address;
  const key = address === undefined ? nodePortKey(group.protocol, port) : addressKey(address, group.protocol, port);
  const element = sets.get(frontendsMap(cluster))?.elements.get(key);
  if (typeof element?.value !== "string" || element.comment !== commentText(group.service)) return undefined;
  return element.value.slice(NUMBER);
}

/** kube-proxy has a set of clients for each endpoint of a service port. */
const NAME = /^affinity-.*\//;

function isKubeProxys(name: string): boolean {
  return NAME.test(name);
}

/** Clients as kube-proxy has remembered them. */
function* kubeProxyClients(
  sets: ReadonlyMap<string, NftSet>,
  placements: ReadonlyMap<string, Placement>,
): Generator<Known | undefined> {
  if (![...sets.keys()].some(isKubeProxys)) return;
  for (const sticky of stickyOf(placements.values())) {
    const { name, protocol } = sticky.placement.group;
    for (const [endpoint, number] of endpointsOf(sticky)) {
      yield undefined;
      const clients = sets.get(kubeProxyAffinitySet(name, protocol, endpoint))?.elements.values() ?? [];
      for (const { key: client, expires = 0 } of clients) yield { ...sticky, client, endpoint: number, expires };
    }
  }
}

import { type Hex, hostHex, type NftSet } from "@fairlead/netfilter/nft";
import { addressKey, nodePortKey } from "../keys.ts";
import { commentText } from "../names.ts";
import type { Placement } from "../placement.ts";
import { POOL_KINDS } from "../pools.ts";
import { CLIENTS, frontendsMap, memberMap } from "../sticky-sets.ts";
import { type Known, numbersByValue, type Sticky, stickyOf } from "./known.ts";

const MEMBERS = [memberMap("cluster"), memberMap("local")];
const FRONTENDS = [POOL_KINDS.address, POOL_KINDS.nodePort].map(({ cluster }) => frontendsMap(cluster));
const NAMES: ReadonlySet<string> = new Set([CLIENTS, ...MEMBERS, ...FRONTENDS]);

export function isOwn(name: string): boolean {
  return NAMES.has(name);
}

/** Digits of a number in a key or a value. */
const NUMBER = hostHex(0).length;

/** Clients as a table of this mode has them, by the numbers that it had. */
export function* ownClients(
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

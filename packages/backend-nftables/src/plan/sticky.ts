import {
  type Expression,
  hostHex,
  type NftChain,
  type NftSet,
  type SetElement,
  statements,
} from "@fairlead/netfilter/nft";
import { stickyDrawsOf } from "./classes.ts";
import type { PlanContext } from "./context.ts";
import { addressType, type EmptySet } from "./frame-sets.ts";
import {
  keyTypes,
  type Need,
  type PoolKind,
  poolName,
  poolNeed,
  type Structure,
  translateBy,
  type Way,
} from "./pools.ts";

/**
 * Services that remember their clients. A slot has a set of clients for each timeout, and a map of endpoints; all
 * services share them, so that these too cost the same however many services there are. A client's key has the frontend
 * in it, so that one of two services is not taken for the other's.
 */
const slotChain = (prefix: string, timeout: number, slot: number) => `${prefix}sticky-${timeout}-slot-${slot}`;
const slotsMap = (prefix: string, timeout: number) => `${prefix}sticky-${timeout}-slots`;

/** The map of a slot: by the frontend's key, the endpoint of the service. */
export function stickyMap({ prefix }: PoolKind, slot: number): string {
  return `${prefix}sticky-endpoints-${slot}`;
}

/** The set of the clients of a slot. kube-proxy removes those whose names begin with `affinity-`: they are its own. */
export function clientsSet({ prefix }: PoolKind, timeout: number, slot: number): string {
  return `${prefix}clients-${timeout}-${slot}`;
}

/** @returns the chain that leads to the endpoints of pools of a size and timeout, and what has to be there for it */
export function stickyWay(kind: PoolKind, size: number, timeout: number): Way {
  const chain = `${kind.prefix}sticky-${timeout}-${size}`;
  const slots = Array.from({ length: size }, (_, slot) => [
    mapNeed(kind, slot),
    clientsNeed(kind, timeout, slot),
    slotNeed(kind, timeout, slot),
  ]).flat();
  const ofClass = { id: chain, make: (context: PlanContext) => classStructure(chain, kind, timeout, size, context) };
  return { chain, needs: [poolNeed(kind, size), slotsNeed(kind, timeout), ...slots, ofClass] };
}

/** Which slot's chain a number that was drawn leads to. */
function slotsNeed({ prefix }: PoolKind, timeout: number): Need {
  const name = slotsMap(prefix, timeout);
  return { id: name, make: () => ({ sets: [emptySet(name, ["integer"], "verdict")], chains: [] }) };
}

function mapNeed(kind: PoolKind, slot: number): Need {
  const name = stickyMap(kind, slot);
  return {
    id: name,
    make: ({ family }) => ({
      sets: [emptySet(name, keyTypes(kind, family), [addressType(family), "inet_service"])],
      chains: [],
    }),
  };
}

/** Its id is the set's name: by it the clients of an earlier table find theirs. */
function clientsNeed(kind: PoolKind, timeout: number, slot: number): Need {
  const name = clientsSet(kind, timeout, slot);
  return {
    id: name,
    make: ({ family }) => ({
      sets: [
        {
          ...emptySet(name, keyTypes({ ...kind, fields: clientFields(kind) }, family)),
          flags: ["timeout", "dynamic"],
          timeout: timeout * 1000,
        },
      ],
      chains: [],
    }),
  };
}

function slotNeed(kind: PoolKind, timeout: number, slot: number): Need {
  const chain = slotChain(kind.prefix, timeout, slot);
  return { id: chain, make: ({ family }) => slotStructure(chain, kind, timeout, slot, family) };
}

/**
 * The chain of a slot remembers the client and translates; where the slot has no endpoint, or the set of clients is
 * full, the rule ends, and the chain returns. The endpoint is looked up first: who finds none is not remembered.
 */
function slotStructure(
  chain: string,
  kind: PoolKind,
  timeout: number,
  slot: number,
  family: PlanContext["family"],
): Structure {
  const clients = clientsSet(kind, timeout, slot);
  const [lookup, nat] = translateBy(stickyMap(kind, slot), family);
  const { expressions: frontend } = statements.loadKey(family, kind.fields);
  // Behind the registers that hold the endpoint.
  const from = family === "ip" ? 4 : 5;
  const client = loadFrom(from, family, clientFields(kind));
  const remember: Expression = { kind: "dynset", set: clients, operation: "update", from };
  const element: SetElement = { key: hostHex(slot), value: { kind: "jump", chain } };
  return {
    sets: [],
    chains: [{ name: chain, rules: [{ expressions: [...frontend, lookup, ...client, remember, nat] }] }],
    elements: [{ set: slotsMap(kind.prefix, timeout), element }],
  };
}

/** The chain of a class: who is remembered, goes to its slot; others draw one that has an endpoint. */
function classStructure(
  name: string,
  kind: PoolKind,
  timeout: number,
  size: number,
  { family }: PlanContext,
): Structure {
  const { prefix } = kind;
  const slots = Array.from({ length: size }, (_, slot) => slot);
  const toSlot = (slot: number) => statements.jump(slotChain(prefix, timeout, slot));
  const known = slots.map((slot) => [
    ...statements.lookUp(family, clientFields(kind), clientsSet(kind, timeout, slot)),
    ...toSlot(slot),
  ]);
  // Who drew empty slots only goes to the first that is filled: so few that the shares stay even.
  const draws = Array.from({ length: stickyDrawsOf(size) }, (): Expression[] => [
    { kind: "numgen", modulus: size, to: 0 },
    { kind: "lookup", set: slotsMap(prefix, timeout), from: 0, to: "verdict" },
  ]);
  // Where no more clients can be remembered, all are served as if the service remembered none.
  const last = statements.goTo(poolName(kind, size));
  const rules = [...known, ...draws, ...slots.map(toSlot), last].map((expressions) => ({ expressions }));
  const chain: NftChain = { name, rules };
  return { sets: [], chains: [chain] };
}

/** `ip saddr . ip daddr . meta l4proto . th dport` */
function clientFields({ fields }: PoolKind): readonly statements.Field[] {
  return ["saddr", ...fields];
}

function loadFrom(first: number, family: PlanContext["family"], fields: readonly statements.Field[]): Expression[] {
  let to = first;
  return fields.map((field) => {
    const expression = statements.load(family, field, to);
    to += (field === "saddr" || field === "daddr") && family === "ip6" ? 4 : 1;
    return expression;
  });
}

function emptySet(name: string, key: NftSet["key"], data?: NftSet["data"]): EmptySet {
  return { name, key, flags: [], ...(data !== undefined && { data }) };
}

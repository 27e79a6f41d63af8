import { type Expression, type NftChain, type NftRule, statements } from "@fairlead/netfilter/nft";
import { moduliOf } from "./classes.ts";
import type { PlanContext } from "./context.ts";
import { addressType, type EmptySet } from "./key-types.ts";
import { keyTypes, type Need, type PoolChain, type PoolKind, poolName, poolNeed, type Structure } from "./pools.ts";
import { CLIENTS, CLIENTS_SIZE, frontendsMap, memberMap, slotMap } from "./sticky-sets.ts";

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

const knownChain = (prefix: string, timeout: number) => `${prefix}sticky-${timeout}`;
const goneChain = (prefix: string, timeout: number) => `${prefix}sticky-gone-${timeout}`;

/** @returns the chain that leads to the endpoints of pools of a size and timeout, and what has to be there for it */
export function stickyChain(kind: PoolKind, size: number, timeout: number): PoolChain {
  const chain = `${knownChain(kind.prefix, timeout)}-${size}`;
  const known = knownChain(kind.prefix, timeout);
  const gone = goneChain(kind.prefix, timeout);
  return {
    chain,
    needs: [
      poolNeed(kind, size),
      clientsNeed,
      frontendsNeed(kind),
      endpointsNeed(kind),
      { id: known, make: (context) => chainOnly(known, knownRules(kind, timeout, context)) },
      { id: gone, make: (context) => chainOnly(gone, goneRules(kind, timeout, context)) },
      { id: chain, make: (context) => chainOnly(chain, drawRules(kind, timeout, size, context)) },
    ],
  };
}

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
function drawRules(kind: PoolKind, timeout: number, size: number, { family }: PlanContext): readonly NftRule[] {
  const { client, number, remembered } = REGISTERS[family];
  const toKnown = statements.jump(knownChain(kind.prefix, timeout));
  const toGone = statements.jump(goneChain(kind.prefix, timeout));
  const draws = moduliOf(size).map(
    (modulus): NftRule => ({
      expressions: [
        ...frontendNumber(kind, family),
        { kind: "numgen", modulus, to: client },
        { kind: "lookup", set: slotMap(kind.set), from: number, to: remembered },
        asMark(remembered),
        statements.load(family, "saddr", client),
        { kind: "dynset", set: CLIENTS, operation: "add", from: number, value: remembered, timeout: timeout * 1000 },
        ...toKnown,
      ],
      comment: `one of ${modulus} slots by chance`,
    }),
  );
  return [
    { expressions: toKnown },
    { expressions: [...rememberedEndpoint(kind, family), ...toGone] },
    ...draws,
    { expressions: statements.goTo(poolName(kind, size)) },
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

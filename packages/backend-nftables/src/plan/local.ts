import { type Expression, type NftRule, statements } from "@fairlead/netfilter/nft";
import type { PlanContext } from "./context.ts";
import { fromNode, fromPods, markForMasquerading } from "./masquerade.ts";
import { keyTypes, type Need, type PoolKind, type Structure } from "./pools.ts";

/** What external frontends of policy Local have in common. */
export interface LocalDispatch {
  readonly chain: string;
  /** Where this node's pods, and the node itself, are led: to the cluster's endpoints. */
  readonly shortCuts: string;
  /** Where all others are led: to endpoints on this node. */
  readonly services: string;
}

export const LOCAL_DISPATCH = {
  address: { chain: "external-local", shortCuts: "local-short-cuts", services: "local-services" },
  nodePort: {
    chain: "external-nodeport-local",
    shortCuts: "nodeport-local-short-cuts",
    services: "nodeport-local-services",
  },
} as const satisfies Record<string, LocalDispatch>;

export function localNeed(dispatch: LocalDispatch, kind: PoolKind): Need {
  return { id: dispatch.chain, make: (context) => localStructure(dispatch, kind, context) };
}

function localStructure(
  { chain, shortCuts, services }: LocalDispatch,
  kind: PoolKind,
  context: PlanContext,
): Structure {
  const { family } = context;
  const by = (map: string) => statements.lookUp(family, kind.fields, map, "verdict");
  const rule = (expressions: readonly Expression[], comment?: string): NftRule => ({
    expressions,
    ...(comment !== undefined && { comment }),
  });
  const key = keyTypes(kind, family);
  const maps = [shortCuts, services].map((name) => ({
    name,
    key,
    data: "verdict" as const,
    flags: [],
  }));
  const rules = [
    ...fromPods(context).map((sender) => rule([...sender, ...by(shortCuts)], "short-circuit pod traffic")),
    // A frontend's own address may be the node's source.
    rule([...fromNode, ...markForMasquerading(context)], "masquerade local traffic"),
    rule([...fromNode, ...by(shortCuts)], "short-circuit local traffic"),
    rule(by(services)),
  ];
  return { sets: maps, chains: [{ name: chain, rules }] };
}

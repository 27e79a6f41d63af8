import type { OwnershipDecision, Planner, ServiceOwnership } from "@fairlead/core";
import type { LearnedOnce } from "@fairlead/intake";
import type { CIDRMove, OwnerMove, WhatIfNetworks } from "../../protocol/index.ts";

type Owners = Pick<Planner, "ownerships">;

/** The services that have another owner, in the order of their names; those that come or go are none of them. */
export function ownerMoves(before: Owners, after: Owners): readonly OwnerMove[] {
  const key = ({ service, family }: ServiceOwnership) => `${service} ${family}`;
  const old = new Map<string, OwnershipDecision>();
  for (const one of before.ownerships()) old.set(key(one), one.decision);
  const moves = Array.from(after.ownerships()).flatMap((one): readonly OwnerMove[] => {
    const [was, { ownership, why }] = [old.get(key(one))?.ownership, one.decision];
    if (was === undefined || was === ownership) return [];
    return [{ service: one.service, family: one.family, before: was, after: ownership, why }];
  });
  return moves.sort((a, b) => (`${a.service} ${a.family}` < `${b.service} ${b.family}` ? -1 : 1));
}

/** What becomes of learned CIDRs that did not so before; undefined: nothing is learned on either side. */
export function networksChange(
  before: LearnedOnce | undefined,
  after: LearnedOnce | undefined,
): WhatIfNetworks | undefined {
  if (before === undefined && after === undefined) return undefined;
  const [old, now] = [before?.report.cidrs ?? [], after?.report.cidrs ?? []];
  const key = ({ side, source, cidr }: (typeof old)[number]) => `${side} ${source} ${cidr}`;
  const [byKey, still] = [new Map(old.map((one) => [key(one), one])), new Set(now.map(key))];
  const changed = now.flatMap((one): readonly CIDRMove[] => {
    const was = byKey.get(key(one));
    if (was?.stage === one.stage && was.why === one.why) return [];
    return [{ ...one, ...(was && { before: was.stage }), after: one.stage }];
  });
  const gone = old
    .filter((one) => !still.has(key(one)))
    .map(({ why: _why, ...one }): CIDRMove => ({ ...one, before: one.stage }));
  const known = new Set(before?.problems);
  return {
    cidrs: [...changed, ...gone],
    problems: (after?.problems ?? []).filter((one) => !known.has(one)),
    unread: (after?.report.sources ?? []).flatMap(({ source, state }) =>
      state === "forbidden" || state === "unreachable" ? [`${source}: ${state}`] : [],
    ),
  };
}

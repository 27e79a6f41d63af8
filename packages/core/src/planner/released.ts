import type { Frontend, ServicePortGroup } from "../plan.ts";
import { isLeft } from "./treatments.ts";

/**
 * What of `before` another network has taken over: the groups with those frontends alone that `after` no longer has, or
 * leaves to it.
 */
export function releasedGroups(
  before: readonly ServicePortGroup[],
  after: readonly ServicePortGroup[],
): readonly ServicePortGroup[] {
  return before.flatMap((group) => {
    const now = after.find((other) => other.id === group.id);
    const frontends = group.frontends.filter(
      (frontend) => !isLeft(frontend) && !now?.frontends.some((other) => isSame(frontend, other) && !isLeft(other)),
    );
    return frontends.length === 0 ? [] : [{ ...group, frontends }];
  });
}

function isSame(a: Frontend, b: Frontend): boolean {
  return a.kind === b.kind && a.address === b.address && a.port === b.port;
}

import { equal } from "../data/equal.ts";
import type { Frontend, ServicePortGroup } from "../plan.ts";
import { endpointsOf, withoutFilter } from "./ownership.ts";
import { draftService, finishService, type ServiceDraft } from "./service-plan.ts";
import type { ReleasedGroup } from "./step.ts";
import { isLeft } from "./treatments.ts";

/**
 * What of `before` another network has taken over: the groups with only those frontends that `after` no longer has, or
 * leaves to it, be it for other clients than before only.
 */
export function releasedGroups(
  before: readonly ServicePortGroup[],
  after: readonly ServicePortGroup[],
): readonly ReleasedGroup[] {
  return before.flatMap((group) => {
    const now = after.find((other) => other.id === group.id)?.frontends ?? [];
    const nowOf = (frontend: Frontend) => now.find((other) => isSame(frontend, other) && !isLeft(other));
    const frontends = group.frontends.filter((one) => !isLeft(one) && !serves(nowOf(one), one));
    if (frontends.length === 0) return [];
    const clients = clientsOf(frontends.map((one) => nowOf(one)?.excludedClients));
    return [{ ...group, frontends, ...(clients && { clients }) }];
  });
}

/** Undefined where any of the frontends is left for all clients. */
function clientsOf([first, ...others]: readonly Frontend["excludedClients"][]): readonly string[] | undefined {
  return others.every((one) => equal(one, first)) ? first : undefined;
}

/**
 * The same for a proxy that starts after the change of owner: the frontends that the service would have if it were
 * ours.
 * Which endpoints it was proxied to is lost, those that it has now may well be the other network's, and an entry to a
 * node port's number may be another program's.
 */
export function releasedUnseen(draft: ServiceDraft, after: readonly ServicePortGroup[]): readonly ReleasedGroup[] {
  const { slices, family, options } = draft.input;
  const { filter } = options;
  if (filter?.isForeign === undefined) return [];
  const now = new Set(endpointsOf(slices, family).map(({ address }) => address));
  const mayBeForeign = (address: string) => now.has(address) || (filter.isForeign?.(address) ?? true);
  return releasedGroups(asIfOurs(draft), after).flatMap((group) => {
    const frontends = group.frontends.filter(({ at }) => at !== "node-port");
    return frontends.length === 0 ? [] : [{ ...group, frontends, mayBeForeign }];
  });
}

function asIfOurs(draft: ServiceDraft): readonly ServicePortGroup[] {
  const ours = draftService(draft.input, draft.clusterIP, withoutFilter([]));
  const owners = new Map(ours.ours.flatMap(({ group, keys }) => keys.map((key) => [key, group])));
  // Without endpoints: nothing asks for them.
  return finishService(ours, (key) => owners.get(key), { groups: new Map(), localReady: 0 }).groups;
}

/** Whether no client that `before` may have served is left now. */
function serves(now: Frontend | undefined, before: Frontend): boolean {
  if (now === undefined) return false;
  return now.excludedClients === undefined || equal(now.excludedClients, before.excludedClients);
}

function isSame(a: Frontend, b: Frontend): boolean {
  return a.kind === b.kind && a.address === b.address && a.port === b.port;
}

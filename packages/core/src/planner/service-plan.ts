import { compact } from "../data/compact.ts";
import type { OwnershipDecision } from "../filter.ts";
import type { HealthCheck, ServicePortGroup } from "../plan.ts";
import { countLocalReady } from "../select/local-ready.ts";
import type { GroupClaims } from "./claims.ts";
import { claimKey } from "./frontend-spec.ts";
import { type BuiltGroup, buildGroup, type GroupInput } from "./group.ts";
import { claimsOf, draftClaimKey, draftGroups, type GroupDraft, groupClaims } from "./group-draft.ts";
import { isLeft } from "./treatments.ts";

/** What a service asks for in a family: a function of its objects, the options and the memory alone. */
export interface ServiceDraft {
  readonly clusterIP: string;
  readonly decision: OwnershipDecision;
  readonly groups: readonly GroupDraft[];
  readonly claims: readonly GroupClaims[];
  readonly input: GroupInput;
}

/** What a service got in a family. */
export interface ServiceRecord {
  readonly decision: OwnershipDecision;
  readonly groups: readonly ServicePortGroup[];
  /** The claims that other groups hold. */
  readonly lost: readonly GroupClaims[];
  readonly healthCheck: HealthCheck | undefined;
  readonly foreignClusterIP: string | undefined;
  readonly noLocalInternal: number;
  readonly noLocalExternal: number;
}

export type Holder = (claim: string) => string | undefined;

export function draftService(
  input: Omit<GroupInput, "excludes">,
  clusterIP: string,
  decision: OwnershipDecision,
): ServiceDraft {
  const { service, family } = input;
  const groups =
    decision.frontends === "none" ? [] : draftGroups(service, family, decision.frontends === "all-but-cluster-ip");
  return {
    clusterIP,
    decision,
    groups,
    claims: groups.flatMap(claimsOf),
    input: { ...input, excludes: decision.excludes },
  };
}

/**
 * @param holder the group that holds a claim, all claims of the draft being in the index
 * @param before the service's groups as they were; what is equal of them is kept
 */
export function finishService(
  draft: ServiceDraft,
  holder: Holder,
  before: readonly ServicePortGroup[] = [],
): ServiceRecord {
  const groupBefore = ({ id }: GroupDraft) => before.find((group) => group.id === id);
  const built = draft.groups.flatMap((group): BuiltGroup[] => {
    const held = group.frontends.filter((one) => one.left || holder(draftClaimKey(group, one)) === group.id);
    return held.every((one) => one.left) ? [] : [buildGroup(group, held, draft.input, groupBefore(group))];
  });
  return {
    decision: draft.decision,
    groups: built.map((one) => one.group),
    lost: lostClaims(draft.claims, holder),
    healthCheck: built.length === 0 ? undefined : healthCheck(draft),
    foreignClusterIP: draft.decision.frontends === "all" ? undefined : draft.clusterIP,
    noLocalInternal: built.filter((one) => one.noLocalInternal).length,
    noLocalExternal: built.filter((one) => one.noLocalExternal).length,
  };
}

/** All claims of a service as it was planned. They are derived: kept for every service they would be a tenth of the heap. */
export function claimsOfRecord({ groups, lost }: ServiceRecord): readonly GroupClaims[] {
  const held = groups.flatMap(({ id, protocol, frontends }) =>
    groupClaims(
      id,
      frontends
        .filter((one) => !isLeft(one))
        .map(({ kind, address, port }) => ({ kind, key: claimKey(protocol, address, port) })),
    ),
  );
  return [...held, ...lost];
}

function lostClaims(claims: readonly GroupClaims[], holder: Holder): readonly GroupClaims[] {
  const lost = claims
    .map((claims) => ({ ...claims, keys: claims.keys.filter((key) => holder(key) !== claims.group) }))
    .filter(({ keys }) => keys.length > 0);
  return compact(lost);
}

function healthCheck({ input }: ServiceDraft): HealthCheck | undefined {
  const { key, service, family, slices, options, excludes } = input;
  const port = service.healthCheckNodePort;
  if (port === undefined) return undefined;
  const localEndpoints = countLocalReady(slices, family, options.nodeName, excludes);
  return { service: key, namespace: service.namespace, name: service.name, port, localEndpoints };
}

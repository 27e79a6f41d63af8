import type { OwnershipDecision } from "../filter.ts";
import { type ServiceKey, serviceKey } from "../objects.ts";
import type { HealthCheck, ServicePortGroup } from "../plan.ts";
import { countLocalReady } from "../select/local-ready.ts";
import type { GroupClaims } from "./claims.ts";
import { type BuiltGroup, buildGroup, type GroupInput } from "./group.ts";
import { claimsOf, draftClaimKey, draftGroups, type GroupDraft } from "./group-draft.ts";

/** What a service asks for in a family: a function of its objects, the options and the memory alone. */
export interface ServiceDraft {
  readonly key: ServiceKey;
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
  readonly claims: readonly GroupClaims[];
  /** The claims that another group holds. */
  readonly lost: readonly string[];
  readonly healthCheck: HealthCheck | undefined;
  readonly foreignClusterIP: string | undefined;
  readonly noLocalInternal: number;
  readonly noLocalExternal: number;
}

export function draftService(
  input: Omit<GroupInput, "excludes">,
  clusterIP: string,
  decision: OwnershipDecision,
): ServiceDraft {
  const { service, family } = input;
  const groups =
    decision.frontends === "none" ? [] : draftGroups(service, family, decision.frontends === "all-but-cluster-ip");
  return {
    key: serviceKey(service.namespace, service.name),
    clusterIP,
    decision,
    groups,
    claims: groups.map(claimsOf),
    input: { ...input, excludes: decision.excludes },
  };
}

/** @param holder the group that holds a claim, all claims of the draft being in the index */
export function finishService(draft: ServiceDraft, holder: (key: string) => string | undefined): ServiceRecord {
  const built = draft.groups.flatMap((group): BuiltGroup[] => {
    const held = group.frontends.filter((one) => one.left || holder(draftClaimKey(group, one)) === group.id);
    return held.every((one) => one.left) ? [] : [buildGroup(group, held, draft.input)];
  });
  return {
    decision: draft.decision,
    groups: built.map((one) => one.group),
    claims: draft.claims,
    lost: lostClaims(draft.claims, holder),
    healthCheck: built.length === 0 ? undefined : healthCheck(draft),
    foreignClusterIP: draft.decision.frontends === "all" ? undefined : draft.clusterIP,
    noLocalInternal: built.filter((one) => one.noLocalInternal).length,
    noLocalExternal: built.filter((one) => one.noLocalExternal).length,
  };
}

const NONE_LOST: readonly string[] = [];

function lostClaims(claims: readonly GroupClaims[], holder: (key: string) => string | undefined): readonly string[] {
  const lost = claims.flatMap(({ group, keys }) => keys.filter((key) => holder(key) !== group));
  return lost.length === 0 ? NONE_LOST : lost;
}

function healthCheck({ key, input }: ServiceDraft): HealthCheck | undefined {
  const { service, family, slices, options, excludes } = input;
  const port = service.healthCheckNodePort;
  if (port === undefined) return undefined;
  const localEndpoints = countLocalReady(slices, family, options.nodeName, excludes);
  return { service: key, namespace: service.namespace, name: service.name, port, localEndpoints };
}

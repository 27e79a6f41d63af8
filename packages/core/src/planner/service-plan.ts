import { compact } from "../data/compact.ts";
import type { OwnershipDecision } from "../filter.ts";
import type { HealthCheck, ServicePortGroup } from "../plan.ts";
import { countLocalReady } from "../select/local-ready.ts";
import type { GroupClaims } from "./claims.ts";
import type { ServiceClaims } from "./frontend-claims.ts";
import { claimKey, type Leaves } from "./frontend-spec.ts";
import { type BuiltGroup, buildGroup, type GroupEndpoints, type GroupInput, groupEndpoints } from "./group.ts";
import { claimsOf, draftClaimKey, draftGroups, type GroupDraft, groupClaims } from "./group-draft.ts";
import { type NodePortChoice, nodePortChoice } from "./node-port-choice.ts";
import { excludedClients } from "./options.ts";
import { isLeft } from "./treatments.ts";

/** What a service asks for in a family: a function of its objects, the options and the memory only. */
export interface ServiceDraft {
  readonly clusterIP: string;
  readonly decision: OwnershipDecision;
  /** Absent: its node ports are open wherever node ports are. */
  readonly nodePorts?: NodePortChoice;
  /** Those with anything for us to serve. */
  readonly groups: readonly GroupDraft[];
  /** The claims of what is ours, and of what another network serves. */
  readonly ours: readonly GroupClaims[];
  readonly left: readonly GroupClaims[];
  readonly input: GroupInput;
}

/** What a service got in a family. */
export interface ServiceRecord {
  /** `Service.created`. */
  readonly created: number | undefined;
  readonly decision: OwnershipDecision;
  /** `ServiceDraft.nodePorts` */
  readonly nodePorts?: NodePortChoice;
  readonly groups: readonly ServicePortGroup[];
  /** The claims of what another network serves. */
  readonly left: readonly GroupClaims[];
  /** Those of all of them that others hold. */
  readonly lost: readonly GroupClaims[];
  readonly healthCheck: HealthCheck | undefined;
  readonly foreignClusterIP: string | undefined;
  readonly noLocalInternal: number;
  readonly noLocalExternal: number;
}

export type Holder = (claim: string) => string | undefined;

const LEAVES: Readonly<Record<OwnershipDecision["frontends"], Leaves>> = {
  all: "nothing",
  "all-but-excluded-clients": "nothing",
  "all-but-cluster-ip": "cluster-ip",
  none: "everything",
};

export function draftService(
  input: Omit<GroupInput, "excludes" | "excludedClients" | "masqueradesPods">,
  clusterIP: string,
  decision: OwnershipDecision,
): ServiceDraft {
  const { service, family, options } = input;
  const nodePorts = nodePortChoice(service, family, options);
  const leaves = LEAVES[decision.frontends];
  const groups = draftGroups(service, family, leaves, options.externalIPs, nodePorts?.addresses);
  return {
    clusterIP,
    decision,
    ...(nodePorts && { nodePorts }),
    groups: groups.filter((group) => group.frontends.some((frontend) => !frontend.left)),
    ours: compact(groups.flatMap((group) => claimsOf(group, false, input.service.created))),
    left: compact(groups.flatMap((group) => claimsOf(group, true, input.service.created))),
    input: {
      ...input,
      excludes: decision.excludes,
      masqueradesPods: decision.masqueradesPods === true,
      excludedClients: decision.frontends === "all-but-excluded-clients" ? excludedClients(options, family) : undefined,
    },
  };
}

/** What a service's endpoints come to, whichever service holds its frontends. */
export interface ServiceEndpoints {
  /** By the ids of the groups. */
  readonly groups: ReadonlyMap<string, GroupEndpoints>;
  readonly localReady: number;
}

/**
 * Yields where there are many.
 *
 * @param before the service's groups as they were; what is equal of them is kept
 */
export function* serviceEndpoints(
  draft: ServiceDraft,
  before: readonly ServicePortGroup[] = [],
): Generator<void, ServiceEndpoints> {
  const known = new Map(before.map((group) => [group.id, group]));
  const groups = new Map<string, GroupEndpoints>();
  for (const group of draft.groups) {
    groups.set(group.id, yield* groupEndpoints(group, draft.input, known.get(group.id)));
  }
  const { service, slices, family, options, excludes } = draft.input;
  const counts = groups.size > 0 && service.healthCheckNodePort !== undefined;
  const localReady = counts ? yield* countLocalReady(slices, family, options.nodeName, excludes) : 0;
  return { groups, localReady };
}

const NO_ENDPOINTS: GroupEndpoints = {
  sets: { cluster: [], local: [], serving: [], onNode: [], all: [], any: false },
  count: 0,
};

/** @param holder the group that holds a claim, all claims of the draft being in the index */
export function finishService(draft: ServiceDraft, holder: Holder, endpoints: ServiceEndpoints): ServiceRecord {
  const built = draft.groups.flatMap((group): BuiltGroup[] => {
    const held = group.frontends.filter((one) => one.left || holder(draftClaimKey(group, one)) === group.id);
    return held.every((one) => one.left)
      ? []
      : [buildGroup(group, held, draft.input, endpoints.groups.get(group.id) ?? NO_ENDPOINTS)];
  });
  return {
    created: draft.input.service.created,
    decision: draft.decision,
    ...(draft.nodePorts && { nodePorts: draft.nodePorts }),
    groups: built.map((one) => one.group),
    left: draft.left,
    lost: lostClaims([...draft.ours, ...draft.left], holder),
    healthCheck: built.length === 0 ? undefined : healthCheck(draft, endpoints.localReady),
    foreignClusterIP: foreignClusterIP(draft),
    noLocalInternal: counted(built, (one) => one.noLocalInternal, draft),
    noLocalExternal: counted(built, (one) => one.noLocalExternal, draft),
  };
}

function counted(built: readonly BuiltGroup[], which: (one: BuiltGroup) => boolean, { input }: ServiceDraft): number {
  const ports = built.filter(which).length;
  return input.options.semantics.noLocalCounts === "services" ? Math.min(1, ports) : ports;
}

function foreignClusterIP({ decision, clusterIP }: ServiceDraft): string | undefined {
  return decision.frontends === "all" ? undefined : clusterIP;
}

export function claimsOfDraft(draft: ServiceDraft): ServiceClaims {
  return { claims: [...draft.ours, ...draft.left], foreignClusterIP: foreignClusterIP(draft) };
}

/**
 * All claims of a service as it was planned. They are derived: kept for every service they would be a tenth of the
 * heap.
 */
export function claimsOfRecord({ created, groups, left, lost, foreignClusterIP }: ServiceRecord): ServiceClaims {
  const held = groups.flatMap(({ id, protocol, frontends }) =>
    groupClaims(
      { group: id, created, left: false },
      frontends
        .filter((one) => !isLeft(one))
        .map(({ kind, address, port }) => ({ kind, key: claimKey(protocol, address, port) })),
    ),
  );
  return { claims: [...held, ...left, ...lost], foreignClusterIP };
}

function lostClaims(claims: readonly GroupClaims[], holder: Holder): readonly GroupClaims[] {
  const lost = claims
    .map((claims) => ({ ...claims, keys: claims.keys.filter((key) => holder(key) !== claims.group) }))
    .filter(({ keys }) => keys.length > 0);
  return compact(lost);
}

function healthCheck(
  { nodePorts, input: { key, service } }: ServiceDraft,
  localEndpoints: number,
): HealthCheck | undefined {
  const port = service.healthCheckNodePort;
  if (port === undefined) return undefined;
  const check = { service: key, namespace: service.namespace, name: service.name, port, localEndpoints };
  return nodePorts === undefined ? check : { ...check, addresses: nodePorts.addresses };
}

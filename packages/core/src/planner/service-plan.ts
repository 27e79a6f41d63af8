/** One service in the plan, from its draft to its finished groups, and at which addresses it opens node ports. */

import { familyOf, inAnyOf } from "@fairlead/base";
import { compact } from "../data.ts";
import type { OwnershipDecision } from "../filter.ts";
import type { IPFamily, Service } from "../objects.ts";
import type { HealthCheck, ServicePortGroup } from "../plan.ts";
import type { Problem } from "../problem.ts";
import { countLocalReady } from "../select/local-ready.ts";
import type { GroupClaims } from "./claims.ts";
import { claimKey, type Leaves, type ServiceClaims } from "./frontends.ts";
import { readCIDRs } from "./gates.ts";
import {
  type BuiltGroup,
  buildGroup,
  claimsOf,
  draftClaimKey,
  draftGroups,
  EVEN,
  type GroupDraft,
  type GroupEndpoints,
  type GroupInput,
  groupClaims,
  groupEndpoints,
} from "./group.ts";
import { excludedClients, type PlannerOptions } from "./options.ts";
import { isLeft } from "./treatments.ts";

/** What a service asks for in a family: a function of its objects, the options and the memory only. */
export interface ServiceDraft {
  readonly clusterIP: string;
  readonly decision: OwnershipDecision;
  /** Absent: its node ports are open wherever node ports are. */
  readonly nodePorts?: NodePortChoice;
  /** Those with anything for us to serve. */
  readonly groups: readonly GroupDraft[];
  /** What is wrong with it; absent: nothing. */
  readonly problems?: readonly Problem[];
  /** The claims of what is ours, and of what another network serves. */
  readonly ours: readonly GroupClaims[];
  readonly left: readonly GroupClaims[];
  readonly input: GroupInput;
}

export interface ServiceRecord {
  /** `Service.created`. */
  readonly created: number | undefined;
  readonly decision: OwnershipDecision;
  /** `ServiceDraft.nodePorts` */
  readonly nodePorts?: NodePortChoice;
  /** `ServiceDraft.problems` */
  readonly problems?: readonly Problem[];
  readonly groups: readonly ServicePortGroup[];
  readonly left: readonly GroupClaims[];
  /** Those of all of them that others hold. */
  readonly lost: readonly GroupClaims[];
  readonly healthCheck: HealthCheck | undefined;
  readonly foreignClusterIP: string | undefined;
  readonly noLocalInternal: number;
  readonly noLocalExternal: number;
}

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
interface ServiceEndpoints {
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

type Holder = (claim: string) => string | undefined;

const NO_ENDPOINTS: GroupEndpoints = {
  sets: {
    cluster: [],
    local: [],
    serving: [],
    onNode: [],
    all: [],
    any: false,
    ready: { cluster: false, local: false },
  },
  weights: EVEN,
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
    ...(draft.problems && { problems: draft.problems }),
    groups: built.map((one) => one.group),
    left: draft.left,
    lost: lostClaims([...draft.ours, ...draft.left], holder),
    healthCheck: built.length === 0 ? undefined : healthCheck(draft, endpoints.localReady),
    foreignClusterIP: foreignClusterIP(draft),
    noLocalInternal: counted(built, (one) => one.noLocalInternal, draft),
    noLocalExternal: counted(built, (one) => one.noLocalExternal, draft),
  };
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

/** Where the node ports of one service open in one family. */
export interface NodePortChoice {
  /** Canonical, in the order of `PlannerOptions.nodePortHosts`; empty: nowhere. */
  readonly addresses: readonly string[];
  /** Why that is nowhere, for the service's owner. */
  readonly problem?: { readonly value: string; readonly reason: string };
}

type Asking = Pick<Service, "annotations" | "clusterIPs" | "ports" | "healthCheckNodePort">;

/**
 * Annotation of a Service: CIDRs, separated by commas. Its node ports, and its health-check node port, open only on
 * those of the node's node-port addresses that are in one of them (kubernetes/kubernetes#90131 asks for it).
 */
const NODE_PORT_ADDRESSES = "fairlead.dev/node-port-addresses";

/**
 * What a service asks for; undefined: nothing, so that its node ports open wherever node ports do. It never opens more
 * than without the annotation: a value that cannot be read opens nothing.
 */
export function nodePortChoice(
  service: Asking,
  family: IPFamily,
  options: Pick<PlannerOptions, "families" | "nodePortHosts">,
): NodePortChoice | undefined {
  const value = service.annotations[NODE_PORT_ADDRESSES];
  if (value === undefined || !hasNodePorts(service)) return undefined;
  const cidrs = readCIDRs(value);
  if (cidrs === undefined)
    return closed(isFirstFamily(service, family, options) ? { value, reason: WRONG } : undefined);
  const hosts = options.nodePortHosts?.[family];
  if (hosts === undefined) return closed();
  const own = cidrs.filter((cidr) => familyOf(cidr) === family);
  const addresses = hosts.filter(inAnyOf(own));
  return addresses.length > 0 ? { addresses: compact(addresses) } : closed({ value, reason: nowhere(family, own) });
}

/** Both families read the same annotations: the first one that this node serves reports what is wrong with them. */
export function isFirstFamily(
  { clusterIPs }: Pick<Service, "clusterIPs">,
  family: IPFamily,
  { families }: Pick<PlannerOptions, "families">,
): boolean {
  return families.find((one) => clusterIPs.some((address) => familyOf(address) === one)) === family;
}

function counted(built: readonly BuiltGroup[], which: (one: BuiltGroup) => boolean, { input }: ServiceDraft): number {
  const ports = built.filter(which).length;
  return input.options.semantics.noLocalCounts === "services" ? Math.min(1, ports) : ports;
}

function foreignClusterIP({ decision, clusterIP }: ServiceDraft): string | undefined {
  return decision.frontends === "all" ? undefined : clusterIP;
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

function hasNodePorts({ ports, healthCheckNodePort }: Asking): boolean {
  return healthCheckNodePort !== undefined || ports.some(({ nodePort }) => nodePort !== undefined);
}

const WRONG =
  `${NODE_PORT_ADDRESSES} must be CIDRs separated by commas, as 192.0.2.0/24,2001:db8::/64; ` +
  "no node port of this Service is open";

function nowhere(family: IPFamily, cidrs: readonly string[]): string {
  const why =
    cidrs.length === 0 ? `has no CIDR of ${family}` : `has none of the addresses on which this node serves node ports`;
  return `${NODE_PORT_ADDRESSES} ${why}; no ${family} node port of this Service is open here`;
}

function closed(problem?: NodePortChoice["problem"]): NodePortChoice {
  return problem === undefined ? CLOSED : { ...CLOSED, problem };
}

const CLOSED: NodePortChoice = { addresses: [] };

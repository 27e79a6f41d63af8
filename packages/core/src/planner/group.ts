/** One port of a service in the plan: its frontends with endpoints, treatment, balance and source ranges. */

import { familyOf } from "@fairlead/base";
import type { ModeSemantics } from "../backend.ts";
import type { OwnershipDecision } from "../filter.ts";
import type { EndpointSlice, IPFamily, Protocol, Service, ServiceKey, ServicePortSpec } from "../objects.ts";
import type { EndpointSetName, Frontend, FrontendKind, PlanEndpoint, ServicePortGroup, SetWeights } from "../plan.ts";
import { candidates } from "../select/candidates.ts";
import { type EndpointSets, endpointSets, type Selecting } from "../select/endpoint-sets.ts";
import { sliceWeights } from "../select/weights.ts";
import { onlyLocal } from "../traffic-policy.ts";
import { CLAIM_RANKS, type ClaimRank, type GroupClaims } from "./claims.ts";
import { claimKey, FRONTEND_KINDS, type FrontendSpec, frontendSpecs, type Leaves } from "./frontends.ts";
import { type Gates, gatesOf } from "./gates.ts";
import type { PlannerOptions } from "./options.ts";
import { isLeft, LEFT, preserving, type TreatmentFacts, treatments } from "./treatments.ts";

export interface GroupInput {
  /** The one copy of the service's key that is kept. */
  readonly key: ServiceKey;
  readonly service: Service;
  readonly family: IPFamily;
  readonly slices: readonly EndpointSlice[];
  readonly excludes: OwnershipDecision["excludes"];
  readonly masqueradesPods: boolean;
  /** `Frontend.excludedClients` of its ClusterIP. */
  readonly excludedClients: readonly string[] | undefined;
  readonly options: PlannerOptions;
}

/** The endpoints of a group: all that costs time where there are many, and hangs on no other service. */
export interface GroupEndpoints {
  readonly sets: EndpointSets;
  /** `ServicePortGroup.weights`, whichever sets are used. */
  readonly weights: Readonly<Record<EndpointSetName, SetWeights | undefined>>;
  /** Distinct ones. */
  readonly count: number;
}

export const EVEN: GroupEndpoints["weights"] = { cluster: undefined, local: undefined };

/**
 * Yields where there are many.
 *
 * @param before the group as it was; what is equal of it is kept
 */
export function* groupEndpoints(
  { port: { name, protocol } }: GroupDraft,
  { service, slices, family, excludes, options }: GroupInput,
  before: ServicePortGroup | undefined,
): Generator<void, GroupEndpoints> {
  const query = { family, name, protocol, excludes };
  const found = yield* candidates(slices, query);
  const sets = yield* endpointSets(found, selecting(options, service, family), before);
  const divided = yield* sliceWeights(slices, query, found, weighing(service.annotations, options.semantics));
  const weights = divided ? { cluster: yield* divided.of(sets.cluster), local: yield* divided.of(sets.local) } : EVEN;
  const rest = { weights, count: found.length };
  if (excludes === undefined || protocol !== "TCP" || !options.resetStaleTCP) return { sets, ...rest };
  // What another network serves is there, too: connections to it go on.
  const named = yield* candidates(slices, { family, name, protocol });
  const all = named.map(({ endpoint: { address, nodeName }, port }) => ({
    address,
    port,
    local: nodeName === options.nodeName,
  }));
  return { sets: { ...sets, all }, ...rest };
}

/**
 * A group and whether it counts in sync_proxy_rules_no_local_endpoints_total (pkg/proxy/ipvs/proxier.go: its service
 * does).
 */
export interface BuiltGroup {
  readonly group: ServicePortGroup;
  readonly noLocalInternal: boolean;
  readonly noLocalExternal: boolean;
}

const NO_ENDPOINTS: readonly PlanEndpoint[] = [];

/**
 * @param held the frontends of the draft that it has in the end, at least one of them ours
 */
export function buildGroup(
  draft: GroupDraft,
  held: readonly FrontendSpec[],
  input: GroupInput,
  { sets, weights, count }: GroupEndpoints,
): BuiltGroup {
  const { service, family } = input;
  const { protocol } = draft.port;
  const balance = balanceOf(service.annotations, input.options.semantics);
  const fastPath = fastPathOf(service.annotations);
  const frontends = buildFrontends(held, treatmentFacts(draft, sets, input), sets, input);
  const group: ServicePortGroup = {
    id: draft.id,
    name: draft.name,
    service: input.key,
    family,
    protocol,
    cluster: usesSet(frontends, "cluster") ? sets.cluster : NO_ENDPOINTS,
    local: usesSet(frontends, "local") ? sets.local : NO_ENDPOINTS,
    serving: sets.serving,
    endpointCount: count,
    frontends,
    annotations: service.annotations,
    ...usedWeights(frontends, weights),
    ...(sets.onNode.length === 0 ? undefined : { onNode: sets.onNode }),
    ...(sets.all !== sets.serving && outlastsReadiness(protocol, input.options) ? { present: sets.all } : undefined),
    ...(balance === undefined ? undefined : { balance }),
    ...(fastPath === undefined ? undefined : { fastPath }),
    ...(service.affinitySeconds === undefined ? undefined : { affinitySeconds: service.affinitySeconds }),
    ...(service.healthCheckNodePort === undefined ? undefined : { healthCheckPort: service.healthCheckNodePort }),
  };
  return { group, ...noLocal(frontends, sets) };
}

/** A group before it is known which of its frontends it holds. */
export interface GroupDraft {
  readonly id: string;
  readonly name: string;
  readonly port: ServicePortSpec;
  readonly frontends: readonly FrontendSpec[];
}

/** The groups that a service asks for in a family, for us or for another network. */
export function draftGroups(
  service: Service,
  family: IPFamily,
  leaves: Leaves,
  externalIPs?: boolean,
  nodePortsAt?: readonly string[],
): readonly GroupDraft[] {
  return service.ports.map((port): GroupDraft => {
    const frontends = frontendSpecs(service, port, family, leaves, externalIPs, nodePortsAt);
    // Joined strings are flat: templates would leave each of these kept strings with its parts.
    const owner = [service.namespace, service.name].join("/");
    const name = port.name === "" ? owner : [owner, port.name].join(":");
    const id = [name, port.protocol.toLowerCase()].join("/");
    return { id, name, port, frontends };
  });
}

/**
 * @param left those of the frontends that another network serves, or those that we do
 * @param created of the service, milliseconds since the epoch; undefined: unknown
 */
export function claimsOf(draft: GroupDraft, left: boolean, created: number | undefined): readonly GroupClaims[] {
  const frontends = draft.frontends.filter((frontend) => frontend.left === left);
  return groupClaims(
    { group: draft.id, created, left },
    frontends.map(({ kind, address, port }) => ({ kind, key: claimKey(draft.port.protocol, address, port) })),
  );
}

/** The claims of a group, by what they are worth; no frontend is claimed twice. */
export function groupClaims(
  { group, created, left }: Pick<GroupClaims, "group" | "created"> & { readonly left: boolean },
  frontends: readonly { readonly kind: FrontendKind; readonly key: string }[],
): readonly GroupClaims[] {
  if (frontends.length === 0) return [];
  const best = new Map<string, ClaimRank>();
  for (const { kind, key } of frontends) {
    const rank = left && kind !== "cluster-ip" ? "left" : FRONTEND_KINDS[kind].rank;
    const known = best.get(key);
    if (known === undefined || CLAIM_RANKS.indexOf(rank) < CLAIM_RANKS.indexOf(known)) best.set(key, rank);
  }
  const byRank = Map.groupBy(best, ([, rank]) => rank);
  return Array.from(byRank, ([rank, claims]) => ({ group, rank, created, keys: claims.map(([key]) => key) }));
}

export function draftClaimKey(draft: GroupDraft, frontend: FrontendSpec): string {
  return claimKey(draft.port.protocol, frontend.address, frontend.port);
}

type Annotations = Readonly<Record<string, string>>;

/**
 * Annotation of a Service that says how its clients are spread over its endpoints: "random" (the default), or
 * "source-hash": by the client's address, the same on every node, with nothing remembered (kubernetes/kubernetes#132710
 * asks for it).
 */
const BALANCE_ANNOTATION = "fairlead.dev/balance";

const SOURCE_HASH = "source-hash";
const BALANCES: readonly string[] = ["random", SOURCE_HASH];

export function balanceProblem(annotations: Annotations, { sourceHash }: ModeSemantics): BalanceProblem | undefined {
  const value = annotations[BALANCE_ANNOTATION];
  if (value === undefined) return undefined;
  if (!BALANCES.includes(value)) {
    return { value, reason: `${BALANCE_ANNOTATION} must be ${BALANCES.join(" or ")}; using random` };
  }
  if (value !== SOURCE_HASH || sourceHash === true) return undefined;
  return { value, reason: `${BALANCE_ANNOTATION}: this mode cannot balance by the client's address; using random` };
}

/**
 * Annotation of a Service: "off" keeps its connections off the fast path, so that all their packets meet all rules.
 * "on" is as without it. Any other value means "off", which is the safe side of a mistake.
 */
const FAST_PATH_ANNOTATION = "fairlead.dev/fast-path";

const VALUES: readonly string[] = ["on", "off"];

export function fastPathProblem(annotations: Annotations): { value: string; reason: string } | undefined {
  const value = annotations[FAST_PATH_ANNOTATION];
  if (value === undefined || VALUES.includes(value)) return undefined;
  return { value, reason: `${FAST_PATH_ANNOTATION} must be ${VALUES.join(" or ")}; using off` };
}

/**
 * Annotation of a Service: what becomes of packets under a traffic policy Local on a node without an endpoint of it.
 * "reject" answers, so that clients try elsewhere at once; "drop" (the default) lets them wait
 * (kubernetes/kubernetes#121371 asks for it).
 */
const NO_LOCAL_ENDPOINT_ANNOTATION = "fairlead.dev/no-local-endpoint";

const NO_LOCAL_ENDPOINT_VALUES: readonly string[] = ["drop", "reject"];

export function noLocalEndpointProblem(
  service: Service,
): { value: string; reason: string; effect?: "note" } | undefined {
  const value = service.annotations[NO_LOCAL_ENDPOINT_ANNOTATION];
  if (value === undefined) return undefined;
  if (!NO_LOCAL_ENDPOINT_VALUES.includes(value)) {
    const reason = `${NO_LOCAL_ENDPOINT_ANNOTATION} must be ${NO_LOCAL_ENDPOINT_VALUES.join(" or ")}; using drop`;
    return { value, reason };
  }
  if (onlyLocal(service.internalTrafficPolicy) || onlyLocal(service.externalTrafficPolicy)) return undefined;
  const reason = `${NO_LOCAL_ENDPOINT_ANNOTATION} has no effect: no traffic policy of this Service is Local`;
  return { value, reason, effect: "note" };
}

/** Whether a node without an endpoint of the service refuses what the policy Local keeps on it. */
export function refusesWithoutLocal({ annotations }: Pick<Service, "annotations">): boolean {
  return annotations[NO_LOCAL_ENDPOINT_ANNOTATION] === "reject";
}

/** Whether conntrack entries are looked at whose conversations end with their endpoint only. */
function outlastsReadiness(protocol: Protocol, { resetStaleTCP }: PlannerOptions): boolean {
  return protocol === "SCTP" || (protocol === "TCP" && resetStaleTCP === true);
}

function treatmentFacts(
  draft: GroupDraft,
  sets: EndpointSets,
  { service, options, family, masqueradesPods }: GroupInput,
): TreatmentFacts {
  return {
    anyEndpoint: sets.any,
    localEndpoint: sets.local.length > 0,
    refusesWithoutLocal: refusesWithoutLocal(service),
    usesClusterEndpoints: draft.frontends.some(
      (one) => FRONTEND_KINDS[one.kind].reach === "external" || !onlyLocal(one.policy),
    ),
    masqueradeAll: options.masqueradeAll,
    masqueradesPods,
    detectsPods: (options.detectors[family]?.kind ?? "none") !== "none",
    semantics: options.semantics,
  };
}

/** Where the mode has them stand in for load balancers only, a service without has nothing but ready endpoints. */
export function selecting(options: SelectingOptions, service: Service, family: IPFamily): Selecting {
  const { nodeName, zone, nodeHints, semantics } = options;
  const standIns =
    semantics.terminatingStandIn === undefined || service.loadBalancerIPs.some((ip) => familyOf(ip) === family);
  const { ignoresHints } = semantics;
  const weights = weighing(service.annotations, semantics);
  return { nodeName, zone, nodeHints, standIns, ...(ignoresHints && { ignoresHints }), ...(weights && { weights }) };
}

type SelectingOptions = Pick<PlannerOptions, "nodeName" | "zone" | "nodeHints" | "semantics">;

function buildFrontends(
  held: readonly FrontendSpec[],
  facts: TreatmentFacts,
  { ready }: EndpointSets,
  { service, family, options, excludedClients }: GroupInput,
): readonly Frontend[] {
  const { semantics } = options;
  const gates: Gates = semantics.ignoresSourceRanges ? {} : gatesOf(service, family, options.nodeIPs[family]);
  const preserved = preservesDestination(service.annotations, semantics);
  const ofReady = { ...facts, anyEndpoint: ready.cluster, localEndpoint: ready.local };
  return held.map((spec) => {
    const { allocated, takesTerminating, preserves } = FRONTEND_KINDS[spec.kind];
    const balanced = preserves === "destination" && semantics.preserveDestination !== undefined && !spec.left;
    const own = semantics.terminatingStandIn === undefined || takesTerminating ? facts : ofReady;
    const gate = gates[spec.kind];
    return buildFrontend(spec, own, preserved ? preserves : undefined, {
      ...(balanced && fromLoadBalancer(spec, preserved, ready)),
      ...(gate && { gate }),
      ...(allocated && excludedClients !== undefined && { excludedClients }),
    });
  });
}

function fromLoadBalancer(
  { policy }: FrontendSpec,
  preservesDestination: boolean,
  ready: EndpointSets["ready"],
): Pick<Frontend, "fromLoadBalancer"> {
  const set = onlyLocal(policy) ? "local" : "cluster";
  return { fromLoadBalancer: { preservesDestination, ready: ready[set] } };
}

function preservesDestination(annotations: Annotations, { preserveDestination: name }: ModeSemantics): boolean {
  return name !== undefined && annotations[name] === "true";
}

function buildFrontend(
  spec: FrontendSpec,
  facts: TreatmentFacts,
  preserves: "destination" | "node" | undefined,
  clients: Pick<Frontend, "gate" | "excludedClients" | "fromLoadBalancer">,
): Frontend {
  const { kind, address, port, policy } = spec;
  const { reach, at } = FRONTEND_KINDS[kind];
  const treated = () =>
    preserves === undefined || onlyLocal(policy)
      ? treatments(reach, policy, facts)
      : preserving(preserves === "destination", facts);
  return {
    kind,
    reach,
    at: address === undefined ? at : "address",
    port,
    policy,
    treatments: spec.left ? LEFT : treated(),
    ...(address === undefined ? undefined : { address }),
    ...clients,
  };
}

function usesSet(frontends: readonly Frontend[], set: EndpointSetName): boolean {
  return frontends.some(({ treatments: { pod, node, outside } }) =>
    [pod, node, outside].some((treatment) => treatment.verdict === "proxy" && treatment.set === set),
  );
}

function usedWeights(
  frontends: readonly Frontend[],
  { cluster, local }: GroupEndpoints["weights"],
): Pick<ServicePortGroup, "weights"> {
  const weights = {
    ...(cluster && usesSet(frontends, "cluster") && { cluster }),
    ...(local && usesSet(frontends, "local") && { local }),
  };
  return Object.keys(weights).length === 0 ? {} : { weights };
}

function noLocal(frontends: readonly Frontend[], sets: EndpointSets): Omit<BuiltGroup, "group"> {
  const lacksLocal = (frontend: Frontend) =>
    sets.any && sets.local.length === 0 && onlyLocal(frontend.policy) && !isLeft(frontend);
  return {
    noLocalInternal: frontends.some((one) => one.reach === "internal" && lacksLocal(one)),
    noLocalExternal: frontends.some((one) => one.reach === "external" && lacksLocal(one)),
  };
}

/** How the mode is to balance the groups of a service; undefined: in its own way. */
function balanceOf(annotations: Annotations, { sourceHash }: ModeSemantics): ServicePortGroup["balance"] {
  return sourceHash === true && annotations[BALANCE_ANNOTATION] === SOURCE_HASH ? SOURCE_HASH : undefined;
}

/** What the mode can do with the weights of a service's slices: no hash of a client's address refuses a share. */
export function weighing(annotations: Annotations, semantics: ModeSemantics): ModeSemantics["weights"] {
  const { weights } = semantics;
  return weights !== undefined && balanceOf(annotations, semantics) !== undefined ? "without refusals" : weights;
}

interface BalanceProblem {
  readonly value: string;
  readonly reason: string;
}

/** What the groups of a service have; undefined: they may be on the fast path. */
function fastPathOf({ [FAST_PATH_ANNOTATION]: value = "on" }: Annotations): ServicePortGroup["fastPath"] {
  return value === "on" ? undefined : "off";
}

/** Whether a share of a frontend's connections is refused: that of an EndpointSlice without endpoints. */
export function refusesShare(
  { weights }: Pick<ServicePortGroup, "weights">,
  { treatments: { pod, node, outside } }: Pick<Frontend, "treatments">,
): boolean {
  if (weights === undefined) return false;
  return [pod, node, outside].some((one) => one.verdict === "proxy" && weights[one.set]?.refused !== undefined);
}

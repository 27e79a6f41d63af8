import type { OwnershipDecision } from "../filter.ts";
import type { EndpointSlice, IPFamily, Protocol, Service, ServiceKey } from "../objects.ts";
import type { EndpointSetName, Frontend, PlanEndpoint, ServicePortGroup } from "../plan.ts";
import { candidates } from "../select/candidates.ts";
import { type EndpointSets, endpointSets } from "../select/endpoint-sets.ts";
import { onlyLocal } from "../traffic-policy.ts";
import { balanceOf } from "./balance.ts";
import { fastPathOf } from "./fast-path.ts";
import { FRONTEND_KINDS, type FrontendSpec } from "./frontend-spec.ts";
import type { GroupDraft } from "./group-draft.ts";
import type { PlannerOptions } from "./options.ts";
import { allowedSources } from "./source-ranges.ts";
import { isLeft, LEFT_ALONE, type TreatmentFacts, treatments } from "./treatments.ts";

/** What a group is made from. */
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
  /** Distinct ones. */
  readonly count: number;
}

/**
 * Yields where there are many.
 *
 * @param before the group as it was; what is equal of it is kept
 */
export function* groupEndpoints(
  { port: { name, protocol } }: GroupDraft,
  { slices, family, excludes, options }: GroupInput,
  before: ServicePortGroup | undefined,
): Generator<void, GroupEndpoints> {
  const found = yield* candidates(slices, { family, name, protocol, excludes });
  const sets = yield* endpointSets(found, options, before);
  if (excludes === undefined || protocol !== "TCP" || !options.resetStaleTCP) return { sets, count: found.length };
  // What another network serves is there, too: connections to it go on.
  const named = yield* candidates(slices, { family, name, protocol });
  const all = named.map(({ endpoint: { address, nodeName }, port }) => ({
    address,
    port,
    local: nodeName === options.nodeName,
  }));
  return { sets: { ...sets, all }, count: found.length };
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
  { sets, count }: GroupEndpoints,
): BuiltGroup {
  const { service, family } = input;
  const { protocol } = draft.port;
  const balance = balanceOf(service.annotations, input.options.semantics);
  const fastPath = fastPathOf(service.annotations);
  const frontends = buildFrontends(held, treatmentFacts(draft, sets, input), input);
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
    ...(sets.onNode.length === 0 ? undefined : { onNode: sets.onNode }),
    ...(sets.all !== sets.serving && outlastsReadiness(protocol, input.options) ? { present: sets.all } : undefined),
    ...(balance === undefined ? undefined : { balance }),
    ...(fastPath === undefined ? undefined : { fastPath }),
    ...(service.affinitySeconds === undefined ? undefined : { affinitySeconds: service.affinitySeconds }),
    ...(service.healthCheckNodePort === undefined ? undefined : { healthCheckPort: service.healthCheckNodePort }),
  };
  return { group, ...noLocal(frontends, sets) };
}

/** Whether conntrack entries are looked at whose conversations end with their endpoint only. */
function outlastsReadiness(protocol: Protocol, { resetStaleTCP }: PlannerOptions): boolean {
  return protocol === "SCTP" || (protocol === "TCP" && resetStaleTCP === true);
}

function treatmentFacts(
  draft: GroupDraft,
  sets: EndpointSets,
  { options, family, masqueradesPods }: GroupInput,
): TreatmentFacts {
  return {
    anyEndpoint: sets.any,
    localEndpoint: sets.local.length > 0,
    usesClusterEndpoints: draft.frontends.some(
      (one) => FRONTEND_KINDS[one.kind].reach === "external" || !onlyLocal(one.policy),
    ),
    masqueradeAll: options.masqueradeAll,
    masqueradesPods,
    detectsPods: (options.detectors[family]?.kind ?? "none") !== "none",
    semantics: options.semantics,
  };
}

function buildFrontends(
  held: readonly FrontendSpec[],
  facts: TreatmentFacts,
  { service, family, options, excludedClients }: GroupInput,
): readonly Frontend[] {
  const sources = allowedSources(service, family, options.nodeIPs[family]);
  return held.map((spec) => {
    const { gated, allocated } = FRONTEND_KINDS[spec.kind];
    return buildFrontend(spec, facts, {
      ...(gated && sources !== undefined && { gate: sources }),
      ...(allocated && excludedClients !== undefined && { excludedClients }),
    });
  });
}

function buildFrontend(
  spec: FrontendSpec,
  facts: TreatmentFacts,
  clients: Pick<Frontend, "gate" | "excludedClients">,
): Frontend {
  const { kind, address, port, policy } = spec;
  const { reach, at } = FRONTEND_KINDS[kind];
  return {
    kind,
    reach,
    at: address === undefined ? at : "address",
    port,
    policy,
    treatments: spec.left ? LEFT_ALONE : treatments(reach, policy, facts),
    ...(address === undefined ? undefined : { address }),
    ...clients,
  };
}

function usesSet(frontends: readonly Frontend[], set: EndpointSetName): boolean {
  return frontends.some(({ treatments: { pod, node, outside } }) =>
    [pod, node, outside].some((treatment) => treatment.verdict === "proxy" && treatment.set === set),
  );
}

function noLocal(frontends: readonly Frontend[], sets: EndpointSets): Omit<BuiltGroup, "group"> {
  const lacksLocal = (frontend: Frontend) =>
    sets.any && sets.local.length === 0 && onlyLocal(frontend.policy) && !isLeft(frontend);
  return {
    noLocalInternal: frontends.some((one) => one.reach === "internal" && lacksLocal(one)),
    noLocalExternal: frontends.some((one) => one.reach === "external" && lacksLocal(one)),
  };
}

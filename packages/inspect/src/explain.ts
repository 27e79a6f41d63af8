import { FLOWTABLE } from "@fairlead/backend-nftables";
import { familyOf, IP_FAMILIES } from "@fairlead/base";
import {
  type EndpointFate,
  endpointFates,
  frontendSpecs,
  type HintsOutcome,
  hintsOutcome,
  type IPFamily,
  type Membership,
  nodePortChoice,
  nodePortRanges,
  nodePortRangesProblem,
  type OwnershipDecision,
  onlyLocal,
  type Problem,
  refusesWithoutLocal,
  type Service,
  type ServiceKey,
  type ServicePortGroup,
  type ServicePortSpec,
  selecting,
  serviceOfProblem,
} from "@fairlead/core";
import { mirroredIn, podNetworkOf } from "@fairlead/intake";
import type { NftTable } from "@fairlead/netfilter/nft";
import { lets } from "./compare/probes.ts";
import type {
  FamilyExplanation,
  FastPathExplanation,
  FrontendExplanation,
  LostFrontend,
  Policies,
  PortExplanation,
  ServiceExplanation,
  ServiceNotice,
} from "./explanation.ts";
import { unservedIn } from "./modes/index.ts";
import type { PlannedNode } from "./node-plan.ts";

/**
 * Everything that decides about a service on the planned node.
 *
 * @param port name or number of the one port that is asked about
 * @returns undefined: there is no Service of that name with a ClusterIP
 */
export function explainService(planned: PlannedNode, key: ServiceKey, port?: string): ServiceExplanation | undefined {
  const service = planned.state.service(key);
  if (service === undefined) return undefined;
  const { nodeName, mode, options } = planned;
  const families = IP_FAMILIES.flatMap((family) => {
    const decision = planned.planner.ownership(key, family);
    return decision === undefined ? [] : [explainFamily(planned, { key, service, family, decision, port })];
  });
  const zone = options.zone === undefined ? undefined : { zone: options.zone };
  const gateway = service.gateway === undefined ? undefined : { gateway: service.gateway };
  const notices = noticesOf(planned.notices, key);
  return { service: key, ...gateway, node: nodeName, ...zone, mode, notices, families };
}

/** The same on a node whose tables are known. */
export function fastPathOnNode(
  explanation: ServiceExplanation,
  tablesOf: (family: ServicePortGroup["family"]) => readonly NftTable[] | undefined,
): ServiceExplanation {
  const families = explanation.families.map((one) => {
    const why = whyDisabled(tablesOf(one.family));
    if (why === undefined) return one;
    const ports = one.ports.map((port) => (port.fastPath?.used ? { ...port, fastPath: { used: false, why } } : port));
    return { ...one, ports };
  });
  return { ...explanation, families };
}

/** What traffic is lost or open by comes first. */
function noticesOf(notices: readonly Problem[], service: ServiceKey): readonly ServiceNotice[] {
  const own = notices.filter((one) => serviceOfProblem(one) === service);
  const made = own.flatMap(({ kind, name, field, value, reason, effect }): ServiceNotice[] => {
    const object = kind === "Service" ? undefined : { object: `${kind}/${name}` };
    return effect === undefined ? [] : [{ ...object, field, value, reason, effect }];
  });
  return [...made.filter(({ effect }) => effect !== "note"), ...made.filter(({ effect }) => effect === "note")];
}

interface FamilyQuery {
  readonly key: ServiceKey;
  readonly service: Service;
  readonly family: IPFamily;
  readonly decision: OwnershipDecision;
  readonly port: string | undefined;
}

function explainFamily(planned: PlannedNode, asked: FamilyQuery): FamilyExplanation {
  const { key, service, family, decision, port } = asked;
  const { excludes: _function, ...ownership } = decision;
  const remembered = planned.memory.get(key, family);
  const podNetwork = podNetworkOf(planned.pods, key, family, decision.frontends);
  const ports = service.ports.filter((one) => port === undefined || one.name === port || String(one.port) === port);
  return {
    family,
    ownership,
    ...(remembered === undefined ? undefined : { remembered }),
    ...(podNetwork && { podNetwork }),
    policies: policies(planned, asked),
    ports: ports.map((one) => explainPort(planned, asked, one)),
  };
}

function policies({ planner, options }: PlannedNode, { key, service, family }: FamilyQuery): Policies {
  const { internalTrafficPolicy, externalTrafficPolicy, affinitySeconds, loadBalancerSourceRanges } = service;
  const check = planner.plan(family).healthChecks.get(key);
  const chosen = nodePortChoice(service, family, options);
  const hasNodePorts = service.ports.some(({ nodePort }) => nodePort !== undefined);
  const { semantics } = options;
  const ranges = hasNodePorts && !semantics.ignoresSourceRanges ? nodePortRanges(service, family) : undefined;
  const noClient = ranges?.length === 0 ? nodePortRangesProblem(service, family, true, semantics)?.reason : undefined;
  const hasLocal = onlyLocal(internalTrafficPolicy) || onlyLocal(externalTrafficPolicy);
  return {
    internalTrafficPolicy,
    externalTrafficPolicy,
    ...(affinitySeconds === undefined ? undefined : { affinitySeconds }),
    loadBalancerSourceRanges: loadBalancerSourceRanges.filter((cidr) => familyOf(cidr) === family),
    ...(chosen && {
      nodePortAddresses: { addresses: chosen.addresses, ...(chosen.problem && { why: chosen.problem.reason }) },
    }),
    ...(ranges && { nodePortSourceRanges: { ranges, ...(noClient !== undefined && { why: noClient }) } }),
    ...(hasLocal && refusesWithoutLocal(service) ? { refusesWithoutLocal: true } : undefined),
    ...(check === undefined ? undefined : { healthCheck: { port: check.port, localEndpoints: check.localEndpoints } }),
  };
}

function explainPort(planned: PlannedNode, asked: FamilyQuery, port: ServicePortSpec): PortExplanation {
  const { key, family, decision } = asked;
  const { name, protocol, route } = port;
  const group = planned.planner.plan(family).groups.get(groupId(key, port));
  const query = { family, name, protocol, excludes: decision.excludes };
  const place = selecting(planned.options, asked.service, family);
  const isLeft = decision.frontends === "none";
  const mirrors = isLeft ? mirroredIn(planned.pods, key, family).map(({ slice }) => slice) : [];
  const fates = endpointFates(mirrors.length > 0 ? mirrors : planned.state.slices(key), query, place);
  const hints = hintsOutcome(planned.state.slices(key), query, place);
  const fastPath = fastPathOf(planned, group);
  const unserved = unservedIn(planned.mode);
  return {
    name,
    protocol,
    ...(route !== undefined && { route }),
    frontends: group?.frontends ?? [],
    ...(unserved !== undefined && { unserved }),
    ...onLoopback(planned, group),
    ...(fastPath && { fastPath }),
    ...distributionOf(asked.service, hints),
    lost: lostFrontends(planned, asked, port, group),
    endpoints: isLeft ? fates.map(leftToOthers) : fates,
    ...refusedOf(group),
  };
}

function refusedOf(group: ServicePortGroup | undefined): Pick<PortExplanation, "refused"> {
  const parts = Object.entries(group?.weights ?? {}).flatMap(([set, { endpoints, refused = 0 }]) =>
    refused === 0 ? [] : [[set, refused / endpoints.reduce((sum, weight) => sum + weight, refused)]],
  );
  return parts.length === 0 ? {} : { refused: Object.fromEntries(parts) };
}

/** Upstream's relay serves TCP, and follows the external traffic policy as clients from outside do. */
function onLoopback(
  { loopbackNodePorts }: PlannedNode,
  group: ServicePortGroup | undefined,
): Pick<PortExplanation, "onLoopback"> {
  const frontend = group?.frontends.find(({ at }) => at === "node-port");
  const outside = frontend?.treatments.outside;
  const here = group && loopbackNodePorts(group.family);
  if (outside === undefined || outside.verdict === "leave" || here === undefined || here === "untouched") return {};
  const relayed = here === "relayed" && group?.protocol === "TCP" && outside.verdict === "proxy";
  const isLetIn = group !== undefined && lets(frontend?.gate, LOOPBACK[group.family]);
  return { onLoopback: relayed && isLetIn ? { relayedTo: outside.set } : "refused" };
}

const LOOPBACK = { IPv4: "127.0.0.1", IPv6: "::1" } as const;

const WITHOUT_HINTS = "only the hints of EndpointSlices count, which the cluster's EndpointSlice controller writes";

function distributionOf(
  { trafficDistribution: asked }: Service,
  { counts, noNode, noZone }: HintsOutcome,
): Pick<PortExplanation, "distribution"> {
  if (asked === undefined) return {};
  const reasons = asked === "PreferSameNode" ? [noNode, noZone] : [noZone];
  const missing = [...new Set(reasons.filter((reason) => reason !== undefined))].join("; ");
  const explained = (why: string) => ({ distribution: { asked, kept: counts, why } });
  if (missing === "")
    return explained(counts === "zone" ? "hints keep it in the same zone" : "hints keep it on the same node");
  if (counts === "zone") return explained(`hints keep it in the same zone only: ${missing}`);
  return explained(`not met: ${missing}; ${WITHOUT_HINTS}`);
}

const FOREIGN: Membership = { in: false, why: "another network serves the service" };

/** If another network serves the service, no endpoint is selected. */
function leftToOthers(fate: EndpointFate): EndpointFate {
  return { ...fate, cluster: FOREIGN, local: FOREIGN };
}
/** As the planner calls the group of a service port (`ServicePortGroup.id`). */
function groupId(key: ServiceKey, { name, protocol }: ServicePortSpec): string {
  return `${name === "" ? key : `${key}:${name}`}/${protocol.toLowerCase()}`;
}

function lostFrontends(
  { planner, options }: PlannedNode,
  { service, family }: FamilyQuery,
  spec: ServicePortSpec,
  group: ServicePortGroup | undefined,
): readonly LostFrontend[] {
  const { protocol } = spec;
  const lookup = planner.lookup(family);
  const chosen = nodePortChoice(service, family, options)?.addresses;
  return frontendSpecs(service, spec, family, "nothing", options.externalIPs, chosen).flatMap(
    ({ kind, address, port }): LostFrontend[] => {
      const one = { kind, port, ...(address !== undefined && { address }) };
      const holder = address === undefined ? lookup.atNodePort(protocol, port) : lookup.at(protocol, address, port);
      if (isServed(group?.frontends ?? [], one)) return [];
      return [holder === undefined ? one : { ...one, heldBy: holder.name }];
    },
  );
}

function isServed(frontends: readonly FrontendExplanation[], one: LostFrontend): boolean {
  return frontends.some(
    ({ address, port, treatments }) =>
      address === one.address && port === one.port && treatments.outside.verdict !== "leave",
  );
}

/** By the plan only; undefined: the fast path is not configured, or the port leads to nothing. */
function fastPathOf(
  { fastPath, planner }: Pick<PlannedNode, "fastPath" | "planner">,
  group: ServicePortGroup | undefined,
): FastPathExplanation | undefined {
  const frontends = group?.frontends.filter(({ treatments }) => treatments.outside.verdict === "proxy") ?? [];
  if (!fastPath || group === undefined || frontends.length === 0) return undefined;
  if (group.protocol === "SCTP") return { used: false, why: "flowtables do not take SCTP" };
  if (group.fastPath === "off") return { used: false, why: "the Service's annotation fairlead.dev/fast-path" };
  const everywhere = planner.plan(group.family).node.nodePortAddresses.kind === "all";
  const isLeftOut = everywhere && frontends.some(({ at }) => at === "node-port");
  const but = isLeftOut ? "; not those to its node port, which is served on all addresses" : "";
  return { used: true, why: `established connections${but}` };
}

function whyDisabled(tables: readonly NftTable[] | undefined): string | undefined {
  if (tables === undefined) return undefined;
  const found = tables.flatMap(({ flowtables }) => flowtables?.get(FLOWTABLE) ?? []);
  if (found.length === 0) return "it is disabled on this node; `fairlead doctor` says why";
  return found.some(({ devices }) => devices.length > 0) ? undefined : "no device is in the flowtable";
}

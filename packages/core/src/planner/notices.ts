/** What is wrong with a service as it is planned here, and what its author may not expect. */

import { familyOf } from "@fairlead/base";
import { nodeProgram } from "../decode/service-notices.ts";
import type { EndpointSlice, IPFamily, Service } from "../objects.ts";
import { type Problem, printableValue } from "../problem.ts";
import { onlyLocal } from "../traffic-policy.ts";
import { FRONTEND_KINDS } from "./frontends.ts";
import { nodePortRangesProblem } from "./gates.ts";
import { balanceProblem, fastPathProblem, noLocalEndpointProblem, weighing } from "./group.ts";
import type { PlannerOptions } from "./options.ts";
import { isFirstFamily, type ServiceDraft } from "./service-plan.ts";

type Found = Pick<Problem, "field" | "value" | "reason" | "effect">;

export function problemOf({ namespace, name }: Pick<Service, "namespace" | "name">, found: Found): Problem {
  return { kind: "Service", namespace, name, ...found };
}

/**
 * All that is wrong with a service in a family now; what two families have in common is the first one's. A start asks
 * for every service, and with most nothing is wrong: the checks make little where they find nothing.
 */
export function serviceProblems(draft: ServiceDraft): readonly Problem[] {
  const found = CHECKS.flatMap((check) => check(draft));
  return found.length === 0 ? NONE : found.map((one) => problemOf(draft.input.service, one));
}

/** Those that were not there before. */
export function freshProblems(now: readonly Problem[] = NONE, before: readonly Problem[] = NONE): readonly Problem[] {
  if (now.length === 0 || before.length === 0) return now;
  const known = new Set(before.map(identity));
  return now.filter((one) => !known.has(identity(one)));
}

const NONE: readonly never[] = [];

function identity({ field, value, reason }: Problem): string {
  return `${field}\0${value}\0${reason}`;
}

function ofOwner({ decision: { problem: reason } }: ServiceDraft): readonly Found[] {
  if (reason === undefined) return NONE;
  return [{ field: reason.startsWith("annotation ") ? ANNOTATIONS : "spec.clusterIPs", value: "", reason }];
}

const ANNOTATIONS = "metadata.annotations";

function ofAnnotations({ groups, nodePorts, input }: ServiceDraft): readonly Found[] {
  const { service, family, options } = input;
  const isFirst = isFirstFamily(service, family, options);
  const once = groups.length > 0 && isFirst;
  const found: readonly (Omit<Found, "field"> | undefined)[] = [
    once ? balanceProblem(service.annotations, options.semantics) : undefined,
    once ? fastPathProblem(service.annotations) : undefined,
    once ? noLocalEndpointProblem(service) : undefined,
    nodePorts?.problem,
    groups.length > 0 ? nodePortRangesProblem(service, family, isFirst, options.semantics) : undefined,
  ];
  return found.flatMap((one) =>
    one === undefined ? [] : [{ ...one, field: ANNOTATIONS, value: printableValue(one.value) }],
  );
}

/** What the mode cannot do of what the slices ask for. */
function ofWeights({ groups, input: { service, slices, family, options } }: ServiceDraft): readonly Found[] {
  const can = weighing(service.annotations, options.semantics);
  if (groups.length === 0 || can === "and refusals" || !isFirstFamily(service, family, options)) return NONE;
  const found = (reason: string): readonly Found[] => [{ field: ANNOTATIONS, value: "", reason }];
  if (can === undefined && slices.some(({ weight = 0 }) => weight > 0))
    return found("fairlead.dev/weight: this mode cannot weigh endpoints; they weigh alike");
  if (!slices.some(({ refused }) => refused)) return NONE;
  const where = options.semantics.weights === can ? "this mode" : "fairlead.dev/balance source-hash";
  return found(`fairlead.dev/weight-refused: ${where} cannot refuse a share; the other endpoints get it`);
}

/** Bad ranges are problems of their own: here is what becomes of the addresses. */
function ofSourceRanges({ groups, input: { service, family, options } }: ServiceDraft): readonly Found[] {
  const { loadBalancerSourceRanges: ranges, unreadableSourceRanges = false, loadBalancerIPs } = service;
  const isLimited = ranges.length > 0 || unreadableSourceRanges;
  if (!isLimited || loadBalancerIPs.length === 0 || groups.length === 0) return NONE;
  if (!isFirstFamily(service, family, options)) return NONE;
  const field = "spec.loadBalancerSourceRanges";
  const addresses = loadBalancerIPs.join(", ");
  if (options.semantics.ignoresSourceRanges) {
    const reason = `is not enforced in this mode: ${addresses} is open to every client`;
    return [{ field, value: ranges.length === 0 ? "" : printableValue(ranges), reason, effect: "open" }];
  }
  return unreadableSourceRanges
    ? [{ field, value: "", reason: `has no CIDR: ${addresses} lets no client in`, effect: "lost" }]
    : [];
}

function ofAddresses({ groups, input: { service, family, options } }: ServiceDraft): readonly Found[] {
  const { externalIPs, loadBalancerIPs, ports } = service;
  if (externalIPs.length + loadBalancerIPs.length === 0) return NONE;
  const notServed: readonly Found[] =
    options.externalIPs === false && externalIPs.length > 0 && isFirstFamily(service, family, options)
      ? [{ ...EXTERNAL_IPS, value: printableValue(externalIPs), reason: GATE_OFF, effect: "lost" }]
      : [];
  const own = groups.length === 0 ? [] : ownAddresses(family, options);
  if (own.length === 0) return notServed;
  const fields = [
    { field: "spec.externalIPs", addresses: options.externalIPs === false ? [] : externalIPs },
    { field: "status.loadBalancer.ingress", addresses: loadBalancerIPs },
  ];
  const taken = fields.flatMap(({ field, addresses }) =>
    addresses.filter((address) => own.includes(address)).map((address) => ofOwnAddress(field, address, ports)),
  );
  return [...notServed, ...taken];
}

const EXTERNAL_IPS = { field: "spec.externalIPs" };
const GATE_OFF = "are not served: the feature gate AllowServiceExternalIPs is off";

function ofOwnAddress(field: string, address: string, ports: Service["ports"]): Found {
  const value = printableValue(address);
  const programs = ports.flatMap(({ protocol, port }) => {
    const program = nodeProgram(protocol, port);
    return program === undefined ? [] : [`${port} (${program})`];
  });
  if (programs.length > 0) {
    const reason = `is an address of this node: the Service takes port ${programs.join(", ")} away from the node itself`;
    return { field, value, reason, effect: "lost" };
  }
  const numbers = ports.map(({ port }) => port).join(", ");
  const reason = `is an address of this node: nothing else on the node is reached there on port ${numbers}`;
  return { field, value, reason, effect: "note" };
}

/** As far as they are stable: interfaces of pods come and go. */
function ownAddresses(family: IPFamily, { nodeIPs, ownIPs = [] }: PlannerOptions): readonly string[] {
  const primary = nodeIPs[family];
  return [...(primary === undefined ? [] : [primary]), ...ownIPs.filter((address) => familyOf(address) === family)];
}

function ofEndpoints({ groups, decision, input: { service, slices, family } }: ServiceDraft): readonly Found[] {
  if (groups.length === 0 || decision.frontends !== "all") return NONE;
  const own = slices.filter((slice) => slice.family === family && slice.endpoints.length > 0);
  if (own.length > 0) return [...ofPolicy(groups, service, own), ...ofPorts(service, own)];
  if (slices.some((slice) => slice.family === family)) return NONE;
  const reason = `no EndpointSlice has ${family} endpoints of this Service: look at its selector and at the names of its slices`;
  return [{ field: "spec.selector", value: "", reason, effect: "note" }];
}

/** Slices by hand often name no node, and Local selects by that name. */
function ofPolicy(
  groups: ServiceDraft["groups"],
  service: Service,
  slices: readonly EndpointSlice[],
): readonly Found[] {
  const { internalTrafficPolicy: internal, externalTrafficPolicy: external } = service;
  if (!onlyLocal(internal) && !onlyLocal(external)) return NONE;
  const reaches = new Set(groups.flatMap(({ frontends }) => frontends.map(({ kind }) => FRONTEND_KINDS[kind].reach)));
  const fields = [
    ...(reaches.has("internal") && onlyLocal(internal) ? ["spec.internalTrafficPolicy"] : []),
    ...(reaches.has("external") && onlyLocal(external) ? ["spec.externalTrafficPolicy"] : []),
  ];
  if (fields.length === 0 || slices.some(({ endpoints }) => endpoints.some(({ nodeName }) => nodeName !== undefined)))
    return NONE;
  const reason = "finds no endpoint on any node: no endpoint of its EndpointSlices has a nodeName";
  return fields.map((field) => ({ field, value: '"Local"', reason, effect: "lost" }));
}

function ofPorts({ ports }: Service, slices: readonly EndpointSlice[]): readonly Found[] {
  const named = new Map(slices.flatMap((slice) => slice.ports).map((port) => [`${port.name}/${port.protocol}`, port]));
  if (named.size === 0) return NONE;
  return ports.flatMap(({ name, protocol }): readonly Found[] => {
    if (named.has(`${name}/${protocol}`)) return NONE;
    const there = [...named.keys()].slice(0, 3).join(", ");
    const reason = `has no endpoints: its EndpointSlices have the ports ${there}, and none of this name and protocol`;
    return [{ field: "spec.ports", value: printableValue(`${name}/${protocol}`), reason, effect: "note" }];
  });
}

const CHECKS: readonly ((draft: ServiceDraft) => readonly Found[])[] = [
  ofOwner,
  ofAnnotations,
  ofWeights,
  ofSourceRanges,
  ofAddresses,
  ofEndpoints,
];

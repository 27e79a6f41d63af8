/** What a Gateway comes to: its Service, the EndpointSlices of that, and its status. */

import { GATEWAY_GROUP, objectsAt, parseAddress, type RawObject } from "@fairlead/base";
import type { Key } from "../requests.ts";
import { conditionsWith, type Finding, no, yes } from "./conditions.ts";
import type { Gateway, GatewayClass, GatewayService, Listener, Route } from "./objects.ts";
import { attachment, namesOf, ownGateway, PROTOCOLS, supportedKinds, type World } from "./routes.ts";
import { askedAddresses, type DesiredService, desiredService } from "./service.ts";
import { type DesiredSlice, gatewaySlices } from "./shares.ts";

export interface GatewayPlan {
  readonly gateway: Gateway;
  /** Undefined: it is to have none. */
  readonly service: DesiredService | undefined;
  /** Another Service has the name, and stays as it is. */
  readonly isTaken: boolean;
  readonly slices: readonly DesiredSlice[];
  readonly status: RawObject;
}

/**
 * Plans a Gateway.
 *
 * @param now RFC 3339, for conditions that change
 * @returns undefined: there is none of ours, and nothing is touched
 */
export function planGateway(world: World, key: Key, now: string): GatewayPlan | undefined {
  const gateway = ownGateway(world, key);
  const ofClass = gateway && world.class(gateway.className);
  if (gateway === undefined || ofClass === undefined || gateway.terminating) return undefined;
  const listeners = gateway.listeners.map((listener) => ({ listener, problem: listenerProblem(gateway, listener) }));
  const served = listeners.filter(({ problem }) => problem === undefined).map(({ listener }) => listener);
  const attached = attachedRoutes(world, gateway, key);
  const accepted = acceptance(gateway, ofClass, listeners);
  const winners = new Map(served.map((listener) => [listener.name, attached.get(listener.name)?.[0]]));
  const service = accepted.status ? desiredService(gateway, ofClass, served, winners) : undefined;
  const there = service && world.service(`${service.namespace}/${service.name}`);
  const isTaken = there !== undefined && there.own?.owner !== gateway.uid;
  const programmed = programming({ accepted, service, there, isTaken, refusal: world.refusal(key), gateway });
  return {
    gateway,
    service,
    isTaken,
    slices: service === undefined ? [] : gatewaySlices(world, service, served, winners),
    status: gatewayStatus(gateway, now, {
      accepted,
      programmed,
      listeners,
      attached,
      there: isTaken ? undefined : there,
    }),
  };
}

/** Of a GatewayClass of ours: whether it is accepted. */
export function classFinding({ hasParameters, addresses }: GatewayClass): Finding {
  if (hasParameters)
    return no("Accepted", "InvalidParameters", "spec.parametersRef must be absent: there are no such parameters");
  if (typeof addresses === "object")
    return no(
      "Accepted",
      "InvalidParameters",
      `annotation fairlead.dev/addresses: ${JSON.stringify(addresses.unknown)} must be load-balancer or node-ports`,
    );
  return yes(
    "Accepted",
    `Gateways have the addresses of a ${addresses === "node-ports" ? "Service with node ports" : "load balancer"}`,
  );
}

/** What the suite of the Gateway API may test, in the order of the alphabet. */
export const SUPPORTED_FEATURES = ["Gateway", "ReferenceGrant", "TCPRoute", "UDPRoute"] as const;

/** Why a listener is not served; undefined: it is. */
function listenerProblem({ listeners }: Gateway, listener: Listener): Finding | undefined {
  const { port, protocol } = listener;
  if (!PROTOCOLS.has(protocol))
    return no("Accepted", "UnsupportedProtocol", `protocol ${protocol} must be ${[...PROTOCOLS.keys()].join(" or ")}`);
  const alike = listeners.filter((one) => one.port === port && one.protocol === protocol);
  return alike.length > 1
    ? no(
        "Accepted",
        "PortUnavailable",
        `${namesOf(alike)} have port ${port} and protocol ${protocol}; one of them is possible`,
      )
    : undefined;
}

/** The routes of each listener, the oldest first: it has the listener, and the others wait. */
function attachedRoutes(world: World, gateway: Gateway, key: Key): ReadonlyMap<string, readonly Route[]> {
  const byListener = new Map<string, Route[]>();
  const inOrder = [...world.routesOf(key)].sort((a, b) => (ageOf(a) < ageOf(b) ? -1 : 1));
  for (const route of inOrder) {
    const names = new Set(
      route.parents
        .filter((ref) => ref.gateway === key)
        .map((ref) => attachment(world, route, ref, gateway))
        .flatMap((taken) => ("reason" in taken ? [] : taken.map(({ name }) => name))),
    );
    for (const name of names) {
      const attached = byListener.get(name) ?? [];
      byListener.set(name, attached);
      attached.push(route);
    }
  }
  return byListener;
}

/** By time, then by namespace and name. */
function ageOf({ created, namespace, name }: Route): string {
  return `${created} ${namespace}/${name}`;
}

interface JudgedListener {
  readonly listener: Listener;
  readonly problem: Finding | undefined;
}

function acceptance(gateway: Gateway, ofClass: GatewayClass, listeners: readonly JudgedListener[]): Finding {
  const { addresses, infrastructure } = gateway;
  const ofClassItself = classFinding(ofClass);
  if (!ofClassItself.status)
    return no("Accepted", "Invalid", `GatewayClass ${ofClass.name} is not accepted: ${ofClassItself.message}`);
  if (infrastructure.hasParameters)
    return no(
      "Accepted",
      "InvalidParameters",
      "spec.infrastructure.parametersRef must be absent: there are no such parameters",
    );
  const odd = addresses.find(
    ({ type, value }) => type !== "IPAddress" || (value !== "" && parseAddress(value) === undefined),
  );
  if (odd !== undefined)
    return no(
      "Accepted",
      "UnsupportedAddress",
      `spec.addresses: ${odd.type} ${JSON.stringify(odd.value)} must be an IPAddress`,
    );
  const wrong = listeners.filter(({ problem }) => problem !== undefined).map(({ listener }) => listener);
  if (wrong.length === 0) return yes("Accepted", "all listeners are accepted");
  const message = `not accepted: ${namesOf(wrong)}`;
  return wrong.length === listeners.length
    ? no("Accepted", "ListenersNotValid", message)
    : { type: "Accepted", status: true, reason: "ListenersNotValid", message };
}

interface ProgrammingParts {
  readonly accepted: Finding;
  readonly service: DesiredService | undefined;
  readonly there: GatewayService | undefined;
  readonly isTaken: boolean;
  readonly refusal: string | undefined;
  readonly gateway: Gateway;
}

function programming({ accepted, service, there, isTaken, refusal, gateway }: ProgrammingParts): Finding {
  if (service === undefined) return no("Programmed", "Invalid", accepted.message);
  if (isTaken)
    return no(
      "Programmed",
      "Invalid",
      `Service ${service.name} is not this Gateway's; it must go, or the Gateway be called otherwise`,
    );
  if (refusal !== undefined) return no("Programmed", "Invalid", refusal);
  if (there?.own === undefined) return no("Programmed", "Pending", `Service ${service.name} is not there yet`);
  const found = addressesOf(there);
  const asked = askedAddresses(gateway);
  const missing = asked.filter((address) => !found.some(({ value }) => value === address));
  if (missing.length > 0)
    return no(
      "Programmed",
      "AddressNotUsable",
      `the load balancer has not given Service ${service.name} address ${missing.join(", ")}`,
    );
  if (found.length === 0)
    return no("Programmed", "AddressNotAssigned", `Service ${service.name} has no address from a load balancer yet`);
  return yes("Programmed", `served by Service ${service.name}`);
}

/** With node ports, the Service's own addresses have the listeners' ports. */
function addressesOf({ type, own }: GatewayService) {
  if (own === undefined) return [];
  if (type === "LoadBalancer") return own.ingress;
  return own.clusterIPs.map((value) => ({ type: "IPAddress" as const, value }));
}

interface StatusParts {
  readonly accepted: Finding;
  readonly programmed: Finding;
  readonly listeners: readonly JudgedListener[];
  readonly attached: ReadonlyMap<string, readonly Route[]>;
  readonly there: GatewayService | undefined;
}

/** Of status all that is ours; other fields stay. */
function gatewayStatus(gateway: Gateway, now: string, parts: StatusParts): RawObject {
  const { accepted, programmed, listeners, attached, there } = parts;
  const { status } = gateway;
  const moment = { generation: gateway.generation, now };
  const addresses = there === undefined ? [] : addressesOf(there);
  const before = new Map(objectsAt(status, "listeners").map((one) => [one["name"], one]));
  return {
    ...status,
    addresses: addresses.slice(0, 16),
    conditions: conditionsWith(status, [accepted, programmed], moment),
    listeners: listeners.map(({ listener, problem }) => ({
      name: listener.name,
      supportedKinds: supportedKinds(listener).map((kind) => ({ group: GATEWAY_GROUP, kind })),
      attachedRoutes: attached.get(listener.name)?.length ?? 0,
      conditions: conditionsWith(
        before.get(listener.name),
        listenerFindings(listener, problem, programmed, there),
        moment,
        problem?.reason === "PortUnavailable" ? [] : ["Conflicted"],
      ),
    })),
  };
}

function listenerFindings(
  listener: Listener,
  problem: Finding | undefined,
  programmed: Finding,
  there: GatewayService | undefined,
): readonly Finding[] {
  const nodePort = there?.ports.find(
    ({ port, protocol }) => port === listener.port && protocol === listener.protocol,
  )?.nodePort;
  const kind = PROTOCOLS.get(listener.protocol)?.kind;
  const odd = listener.kinds.filter((one) => one.group !== GATEWAY_GROUP || one.kind !== kind);
  return [
    problem ?? yes("Accepted", "its port and protocol are served"),
    odd.length === 0
      ? yes("ResolvedRefs", "all kinds of routes are known")
      : no(
          "ResolvedRefs",
          "InvalidRouteKinds",
          `allowedRoutes.kinds: ${odd.map((one) => one.kind).join(", ")} must be ${kind ?? "those of a supported protocol"}`,
        ),
    problem !== undefined
      ? no("Programmed", "Invalid", problem.message)
      : programmed.status
        ? yes(
            "Programmed",
            nodePort === undefined ? programmed.message : `${programmed.message}, at node port ${nodePort}`,
          )
        : no("Programmed", programmed.reason === "Pending" ? "Pending" : "Invalid", programmed.message),
    ...(problem?.reason === "PortUnavailable"
      ? [{ type: "Conflicted", status: true, reason: "ProtocolConflict", message: problem.message } as const]
      : []),
  ];
}

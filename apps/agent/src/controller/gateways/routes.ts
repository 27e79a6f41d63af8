/** What a route leads to: the listeners that take it, the backends that its references name, and its status. */

import type { Protocol, RawObject } from "@fairlead/base";
import { GATEWAY_CONTROLLER, GATEWAY_GROUP } from "@fairlead/base";
import type { Key } from "../requests.ts";
import { conditionsWith, type Finding, no, yes } from "./conditions.ts";
import type {
  BackendRef,
  Gateway,
  GatewayClass,
  GatewayService,
  LabelSelector,
  Listener,
  ParentRef,
  ReferenceGrant,
  Route,
  RouteKind,
  SourceSlice,
} from "./objects.ts";

/** The cluster's objects, as far as Gateways are made of them. */
export interface World {
  class(name: string): GatewayClass | undefined;
  gateway(key: Key): Gateway | undefined;
  /** Routes that name the Gateway as a parent. */
  routesOf(gateway: Key): readonly Route[];
  /** Undefined: there is no such namespace. */
  namespaceLabels(namespace: string): Readonly<Record<string, string>> | undefined;
  grantsIn(namespace: string): readonly ReferenceGrant[];
  service(key: Key): GatewayService | undefined;
  /** Slices of a backend, in the order of their names; without those that this controller writes. */
  slicesOf(service: Key): readonly SourceSlice[];
  /** Why the API server refused what a Gateway needs; undefined: it did not. */
  refusal(gateway: Key): string | undefined;
}

/** Protocols of listeners that are served; of all others the listener is not accepted. */
export const PROTOCOLS: ReadonlyMap<string, { readonly kind: RouteKind; readonly protocol: Protocol }> = new Map([
  ["TCP", { kind: "TCPRoute", protocol: "TCP" }],
  ["UDP", { kind: "UDPRoute", protocol: "UDP" }],
]);

/** Kinds of routes that a listener takes. */
export function supportedKinds({ protocol, kinds }: Listener): readonly RouteKind[] {
  const kind = PROTOCOLS.get(protocol)?.kind;
  if (kind === undefined) return [];
  return kinds.length === 0 || kinds.some((one) => one.group === GATEWAY_GROUP && one.kind === kind) ? [kind] : [];
}

/** The Gateway that a parent reference names, where it is one of ours. */
export function ownGateway(world: World, key: Key): Gateway | undefined {
  const gateway = world.gateway(key);
  return gateway !== undefined && world.class(gateway.className)?.isOurs === true ? gateway : undefined;
}

/** The listeners of a Gateway that a route is attached to by a reference, or why there is none. */
export function attachment(
  world: World,
  route: Route,
  { sectionName, port }: ParentRef,
  gateway: Gateway,
): readonly Listener[] | Finding {
  const named = gateway.listeners.filter(
    (one) => (sectionName === undefined || one.name === sectionName) && (port === undefined || one.port === port),
  );
  if (named.length === 0) {
    const asked = [sectionName && `sectionName ${sectionName}`, port && `port ${port}`].filter(Boolean).join(" and ");
    return no("Accepted", "NoMatchingParent", `the Gateway has no listener with ${asked || "any name"}`);
  }
  const taking = named.filter((listener) => takes(world, listener, route, gateway));
  if (taking.length > 0) return taking;
  const message = `no listener takes a ${route.kind} of namespace ${route.namespace}: ${namesOf(named)}`;
  return no("Accepted", "NotAllowedByListeners", message);
}

/** Where a share of a listener's connections goes. */
export type Share =
  | { readonly service: GatewayService; readonly port: string; readonly number: number; readonly weight: number }
  /** The reference cannot be followed: the share has to be refused. */
  | { readonly refused: Finding; readonly weight: number };

/** What the backend references of a route lead to, in their order. */
export function sharesOf(world: World, route: Route): readonly Share[] {
  return route.backends.map((ref) => shareOf(world, route, ref));
}

/** status.parents of a route, as it is to be: one for each reference to a Gateway of ours; those of others stay. */
export function routeParents(world: World, route: Route, now: string): readonly RawObject[] {
  const moment = { generation: route.generation, now };
  const refs = resolvedRefs(sharesOf(world, route));
  const left = new Map(
    route.parents.flatMap((ref) => {
      const gateway = ownGateway(world, ref.gateway);
      return gateway === undefined ? [] : [[fieldsText(ref.raw), { ref, gateway }] as const];
    }),
  );
  const written = ({ ref, gateway }: { ref: ParentRef; gateway: Gateway }, before?: RawObject): RawObject => {
    const taken = attachment(world, route, ref, gateway);
    const accepted = "reason" in taken ? taken : yes("Accepted", `attached to ${namesOf(taken)}`);
    const conditions = conditionsWith(before, [accepted, refs], moment);
    return { parentRef: ref.raw, controllerName: GATEWAY_CONTROLLER, conditions };
  };
  const there = route.status.flatMap((before) => {
    if (before["controllerName"] !== GATEWAY_CONTROLLER) return [before];
    const text = fieldsText(before["parentRef"]);
    const found = left.get(text);
    left.delete(text);
    return found === undefined ? [] : [written(found, before)];
  });
  return [...there, ...Array.from(left.values(), (one) => written(one))];
}

/** `listener a` or `listeners a, b and 3 more`. */
export function namesOf(listeners: readonly { readonly name: string }[]): string {
  const named = listeners.slice(0, NAMED).map(({ name }) => name);
  const more = listeners.length > NAMED ? ` and ${listeners.length - NAMED} more` : "";
  return `${listeners.length === 1 ? "listener" : "listeners"} ${named.join(", ")}${more}`;
}

const NAMED = 5;

function takes(world: World, listener: Listener, { kind, namespace }: Route, gateway: Gateway): boolean {
  if (!supportedKinds(listener).includes(kind)) return false;
  if (listener.from === "All") return true;
  if (listener.from === "Same") return namespace === gateway.namespace;
  const labels = listener.from === "Selector" ? world.namespaceLabels(namespace) : undefined;
  return labels !== undefined && selects(listener.selector, labels);
}

/** As metav1.LabelSelector is meant; an operator that does not exist selects nothing. */
function selects({ matchLabels, matchExpressions }: LabelSelector, labels: Readonly<Record<string, string>>): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values }) => {
      const has = Object.hasOwn(labels, key);
      const isListed = has && values.includes(labels[key]);
      const meaning: Readonly<Record<string, boolean>> = {
        In: isListed,
        NotIn: !isListed,
        Exists: has,
        DoesNotExist: !has,
      };
      return meaning[operator] === true;
    })
  );
}

const PROTOCOL_OF: Readonly<Record<RouteKind, Protocol>> = { TCPRoute: "TCP", UDPRoute: "UDP" };

function shareOf(world: World, route: Route, ref: BackendRef): Share {
  const { group, kind, namespace, name, port, weight } = ref;
  const refused = (reason: string, message: string): Share => ({
    refused: no("ResolvedRefs", reason, message),
    weight,
  });
  const key: Key = `${namespace}/${name}`;
  if (group !== "" || kind !== "Service")
    return refused("InvalidKind", `backend ${kind} ${key} must be a Service of the core group`);
  if (namespace !== route.namespace && !isGranted(world, route, ref))
    return refused("RefNotPermitted", `no ReferenceGrant in ${namespace} lets ${route.kind} lead to Service ${name}`);
  const service = world.service(key);
  if (service === undefined) return refused("BackendNotFound", `there is no Service ${key}`);
  if (service.type === "ExternalName")
    return refused("UnsupportedValue", `Service ${key} is of type ExternalName, which has no endpoints`);
  if (service.own !== undefined) return refused("UnsupportedValue", `Service ${key} is a Gateway's own`);
  const protocol = PROTOCOL_OF[route.kind];
  const found = service.ports.find((one) => one.port === port && one.protocol === protocol);
  if (found === undefined)
    return refused("BackendNotFound", `Service ${key} has no ${protocol} port ${port ?? "(the reference has none)"}`);
  return { service, port: found.name, number: found.port, weight };
}

function isGranted(world: World, { kind, namespace: from }: Route, { namespace, name }: BackendRef): boolean {
  return world
    .grantsIn(namespace)
    .some(
      (grant) =>
        grant.from.some((one) => one.group === GATEWAY_GROUP && one.kind === kind && one.namespace === from) &&
        grant.to.some((one) => one.group === "" && one.kind === "Service" && (one.name ?? name) === name),
    );
}

function resolvedRefs(shares: readonly Share[]): Finding {
  const wrong = shares.flatMap((share) => ("refused" in share ? [share.refused] : []));
  const [first] = wrong;
  if (first === undefined) return yes("ResolvedRefs", "all backends are there");
  const more = wrong.length > 1 ? `, and ${wrong.length - 1} more` : "";
  return { ...first, message: `${first.message}${more}; its share of connections is refused` };
}

/** Equal for equal fields, in whatever order the API server gives them. */
function fieldsText(value: unknown): string {
  return JSON.stringify(Object.entries(Object(value)).sort(([a], [b]) => (a < b ? -1 : 1)));
}

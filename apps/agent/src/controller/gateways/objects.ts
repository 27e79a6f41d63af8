/** What is read of the objects that Gateways are made of. All of it is untrusted, and what is kept of it has bounds. */

import {
  GATEWAY_CONTROLLER,
  GATEWAY_GROUP,
  IP_FAMILIES,
  type IPFamily,
  isObject,
  isPort,
  itemsOf,
  numberOf,
  objectAt,
  objectsAt,
  parseAddress,
  type RawObject,
  stringOf,
  textAt,
  valueAt,
} from "@fairlead/base";
import {
  hintNames,
  type Key,
  SERVICE_NAME_LABEL,
  type SlicePort,
  slicePortIn,
  textsIn,
  versionOf,
} from "../requests.ts";

/** The value of the labels managed-by on Services and EndpointSlices that are a Gateway's. */
export const GATEWAYS_MANAGER = "gateways.fairlead.dev";
/** On a GatewayClass: where the addresses of its Gateways come from. */
const ADDRESSES_ANNOTATION = "fairlead.dev/addresses";

export const MANAGER_LABEL = "app.kubernetes.io/managed-by";

/** Metadata that statuses and writes need. */
export interface Identity {
  /** "" for what is in no namespace. */
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
  readonly resourceVersion: string;
  /** metadata.deletionTimestamp is set. */
  readonly terminating: boolean;
}

export interface GatewayClass extends Identity {
  /** spec.controllerName is ours; otherwise nothing of it is touched. */
  readonly isOurs: boolean;
  readonly hasParameters: boolean;
  readonly addresses: "load-balancer" | "node-ports" | { readonly unknown: string };
  readonly status: RawObject;
}

export interface Listener {
  readonly name: string;
  readonly port: number;
  readonly protocol: string;
  /** allowedRoutes.kinds; empty: those of the protocol. */
  readonly kinds: readonly { readonly group: string; readonly kind: string }[];
  readonly from: string;
  readonly selector: LabelSelector;
}

export interface LabelSelector {
  readonly matchLabels: Readonly<Record<string, string>>;
  readonly matchExpressions: readonly {
    readonly key: string;
    readonly operator: string;
    readonly values: readonly unknown[];
  }[];
}

export interface Gateway extends Identity {
  readonly className: string;
  readonly listeners: readonly Listener[];
  readonly addresses: readonly { readonly type: string; readonly value: string }[];
  readonly infrastructure: {
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations: Readonly<Record<string, string>>;
    readonly hasParameters: boolean;
  };
  readonly status: RawObject;
}

export type RouteKind = "TCPRoute" | "UDPRoute";

export interface ParentRef {
  readonly gateway: Key;
  readonly sectionName?: string;
  readonly port?: number;
  /** As it is in the route, for its status. */
  readonly raw: RawObject;
}

export interface BackendRef {
  readonly group: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly port?: number;
  readonly weight: number;
}

export interface Route extends Identity {
  readonly kind: RouteKind;
  /** metadata.creationTimestamp, whose text is in the order of time. */
  readonly created: string;
  readonly parents: readonly ParentRef[];
  readonly backends: readonly BackendRef[];
  /** status.parents, of all controllers. */
  readonly status: readonly RawObject[];
}

export interface ReferenceGrant {
  readonly from: readonly { readonly group: string; readonly kind: string; readonly namespace: string }[];
  readonly to: readonly { readonly group: string; readonly kind: string; readonly name?: string }[];
}

/** A Service, as far as a route or a Gateway needs it. */
export interface GatewayService extends Identity {
  readonly type: string;
  readonly ports: readonly ServicePort[];
  /** It has the label of Services that are a Gateway's: what is read only of those follows. */
  readonly own?: OwnService;
}

export interface ServicePort extends SlicePort {
  readonly nodePort?: number;
}

interface OwnService {
  /** metadata.uid of the Gateway that owns it. */
  readonly owner: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly loadBalancerIP: string;
  readonly clusterIPs: readonly string[];
  /** Of status.loadBalancer. */
  readonly ingress: readonly { readonly type: "IPAddress" | "Hostname"; readonly value: string }[];
}

/** An EndpointSlice of a backend. */
export interface SourceSlice {
  readonly name: string;
  readonly service: Key;
  readonly family: IPFamily;
  readonly ports: readonly SlicePort[];
  /** By address: the endpoint as it is written, in JSON. */
  readonly endpoints: ReadonlyMap<string, string>;
}

/** Reads a GatewayClass. Never throws. */
export function decodeClass(raw: unknown): GatewayClass | undefined {
  const identity = identityIn(raw);
  const asked = stringOf(valueAt(raw, "metadata", "annotations", ADDRESSES_ANNOTATION)) ?? "load-balancer";
  return (
    identity && {
      ...identity,
      isOurs: valueAt(raw, "spec", "controllerName") === GATEWAY_CONTROLLER,
      hasParameters: isObject(valueAt(raw, "spec", "parametersRef")),
      addresses: asked === "load-balancer" || asked === "node-ports" ? asked : { unknown: asked.slice(0, 80) },
      status: objectAt(raw, "status"),
    }
  );
}

/** Bounds of the API itself, for a server whose validation is another one. */
const [MOST_LISTENERS, MOST_PARENTS, MOST_BACKENDS, MOST_ADDRESSES, MOST_WEIGHT] = [64, 32, 16, 16, 1_000_000];

/** Reads a Gateway. Never throws. */
export function decodeGateway(raw: unknown): Gateway | undefined {
  const [identity, spec] = [identityIn(raw), objectAt(raw, "spec")];
  const infrastructure = objectAt(spec, "infrastructure");
  return (
    identity && {
      ...identity,
      className: textAt(spec, "gatewayClassName") ?? "",
      listeners: objectsAt(spec, "listeners").slice(0, MOST_LISTENERS).flatMap(listenerIn),
      addresses: objectsAt(spec, "addresses")
        .slice(0, MOST_ADDRESSES)
        .map((item) => ({ type: textAt(item, "type") ?? "IPAddress", value: textAt(item, "value") ?? "" })),
      infrastructure: {
        labels: textsIn(infrastructure["labels"]),
        annotations: textsIn(infrastructure["annotations"]),
        hasParameters: isObject(infrastructure["parametersRef"]),
      },
      status: objectAt(raw, "status"),
    }
  );
}

/** Reads a TCPRoute or UDPRoute. Never throws. */
export function decodeRoute(kind: RouteKind, raw: unknown): Route | undefined {
  const [identity, spec] = [identityIn(raw), objectAt(raw, "spec")];
  if (identity === undefined) return undefined;
  const { namespace } = identity;
  return {
    ...identity,
    kind,
    created: stringOf(valueAt(raw, "metadata", "creationTimestamp")) ?? "",
    parents: objectsAt(spec, "parentRefs").slice(0, MOST_PARENTS).flatMap(parentIn(namespace)),
    // A route has one rule.
    backends: objectsAt(objectsAt(spec, "rules")[0], "backendRefs").slice(0, MOST_BACKENDS).map(backendIn(namespace)),
    status: objectsAt(objectAt(raw, "status"), "parents"),
  };
}

/** Reads a ReferenceGrant. Never throws. */
export function decodeGrant(raw: unknown): ReferenceGrant {
  const spec = objectAt(raw, "spec");
  return {
    from: objectsAt(spec, "from").map((item) => ({
      group: textAt(item, "group") ?? "",
      kind: textAt(item, "kind") ?? "",
      namespace: textAt(item, "namespace") ?? "",
    })),
    to: objectsAt(spec, "to").map((item) => {
      const name = textAt(item, "name");
      const referent = { group: textAt(item, "group") ?? "", kind: textAt(item, "kind") ?? "" };
      return name === undefined ? referent : { ...referent, name };
    }),
  };
}

/** Reads a core/v1 Service. Never throws. */
export function decodeService(raw: unknown): GatewayService | undefined {
  const [identity, spec] = [identityIn(raw), objectAt(raw, "spec")];
  if (identity === undefined) return undefined;
  const isOwn = valueAt(raw, "metadata", "labels", MANAGER_LABEL) === GATEWAYS_MANAGER;
  return {
    ...identity,
    // Those of others change their versions with every status, which is nothing to a route.
    ...(!isOwn && { resourceVersion: "" }),
    type: textAt(spec, "type") ?? "ClusterIP",
    ports: objectsAt(spec, "ports").flatMap(servicePortIn),
    ...(isOwn && { own: ownServiceIn(raw) }),
  };
}

/** Reads a discovery.k8s.io/v1 EndpointSlice. Never throws. @returns undefined: it gives names, or has no Service */
export function decodeSlice(raw: unknown): SourceSlice | undefined {
  const metadata = objectAt(raw, "metadata");
  const [namespace, name] = [textAt(metadata, "namespace"), textAt(metadata, "name")];
  const service = textAt(metadata["labels"], SERVICE_NAME_LABEL);
  const family = IP_FAMILIES.find((one) => one === valueAt(raw, "addressType"));
  if (namespace === undefined || name === undefined || service === undefined || family === undefined) return undefined;
  return {
    name,
    service: `${namespace}/${service}`,
    family,
    ports: objectsAt(raw, "ports").flatMap(slicePortIn),
    endpoints: new Map(objectsAt(raw, "endpoints").flatMap(endpointIn)),
  };
}

function identityIn(raw: unknown): Identity | undefined {
  const metadata = objectAt(raw, "metadata");
  const name = textAt(metadata, "name");
  if (name === undefined) return undefined;
  return {
    namespace: textAt(metadata, "namespace") ?? "",
    name,
    uid: textAt(metadata, "uid") ?? "",
    generation: numberOf(metadata["generation"]) ?? 0,
    resourceVersion: versionOf(raw),
    terminating: textAt(metadata, "deletionTimestamp") !== undefined,
  };
}

function listenerIn(item: RawObject): readonly Listener[] {
  const [name, port] = [textAt(item, "name"), item["port"]];
  if (name === undefined || !isPort(port)) return [];
  const allowed = objectAt(item, "allowedRoutes");
  const namespaces = objectAt(allowed, "namespaces");
  const selector = objectAt(namespaces, "selector");
  return [
    {
      name,
      port,
      protocol: textAt(item, "protocol") ?? "",
      kinds: objectsAt(allowed, "kinds").map((one) => ({
        group: stringOf(one["group"]) ?? GATEWAY_GROUP,
        kind: textAt(one, "kind") ?? "",
      })),
      from: textAt(namespaces, "from") ?? "Same",
      selector: {
        matchLabels: textsIn(selector["matchLabels"]),
        matchExpressions: objectsAt(selector, "matchExpressions").map((one) => ({
          key: textAt(one, "key") ?? "",
          operator: textAt(one, "operator") ?? "",
          values: itemsOf(one["values"]),
        })),
      },
    },
  ];
}

/** Of the parents that are Gateways. */
function parentIn(namespace: string): (item: RawObject) => readonly ParentRef[] {
  return (item) => {
    const [name, sectionName, port] = [textAt(item, "name"), textAt(item, "sectionName"), item["port"]];
    const isGateway =
      (stringOf(item["group"]) ?? GATEWAY_GROUP) === GATEWAY_GROUP && (item["kind"] ?? "Gateway") === "Gateway";
    if (name === undefined || !isGateway) return [];
    const fields = ["group", "kind", "namespace", "name", "sectionName", "port"].filter((field) => field in item);
    return [
      {
        gateway: `${textAt(item, "namespace") ?? namespace}/${name}`,
        ...(sectionName !== undefined && { sectionName }),
        ...(isPort(port) && { port }),
        raw: Object.fromEntries(fields.map((field) => [field, item[field]])),
      },
    ];
  };
}

function backendIn(namespace: string): (item: RawObject) => BackendRef {
  return (item) => {
    const [port, weight] = [item["port"], Math.trunc(numberOf(item["weight"]) ?? 1)];
    return {
      group: stringOf(item["group"]) ?? "",
      kind: textAt(item, "kind") ?? "Service",
      namespace: textAt(item, "namespace") ?? namespace,
      name: textAt(item, "name") ?? "",
      ...(isPort(port) && { port }),
      weight: Math.max(0, Math.min(MOST_WEIGHT, weight)),
    };
  };
}

function servicePortIn(item: RawObject): readonly ServicePort[] {
  const { nodePort } = item;
  return slicePortIn(item).map((port) => ({ ...port, ...(isPort(nodePort) && { nodePort }) }));
}

function ownServiceIn(raw: unknown): OwnService {
  const [metadata, spec] = [objectAt(raw, "metadata"), objectAt(raw, "spec")];
  const owner = objectsAt(metadata, "ownerReferences").find((one) => one["controller"] === true);
  const ingress = objectsAt(valueAt(raw, "status", "loadBalancer"), "ingress");
  return {
    owner: owner?.["kind"] === "Gateway" ? (textAt(owner, "uid") ?? "") : "",
    labels: textsIn(metadata["labels"]),
    annotations: textsIn(metadata["annotations"]),
    loadBalancerIP: textAt(spec, "loadBalancerIP") ?? "",
    clusterIPs: itemsOf(spec["clusterIPs"]).filter((ip): ip is string => typeof ip === "string" && ip !== "None"),
    ingress: ingress.flatMap((item): OwnService["ingress"] => {
      const [ip, hostname] = [textAt(item, "ip"), textAt(item, "hostname")];
      if (ip !== undefined) return [{ type: "IPAddress", value: ip }];
      return hostname === undefined ? [] : [{ type: "Hostname", value: hostname }];
    }),
  };
}

/** The first address only, as a proxy has it; the fields in one order, so that equal endpoints have one text. */
function endpointIn(item: RawObject): readonly (readonly [string, string])[] {
  const address = stringOf(itemsOf(item["addresses"])[0]);
  if (address === undefined || parseAddress(address) === undefined) return [];
  const written = {
    addresses: [address],
    conditions: picked(objectAt(item, "conditions"), ["ready", "serving", "terminating"], "boolean"),
    targetRef: nonEmpty(picked(objectAt(item, "targetRef"), ["kind", "namespace", "name", "uid"], "string")),
    ...picked(item, ["nodeName", "zone"], "string"),
    hints: nonEmpty({ forZones: namesIn(item, "forZones"), forNodes: namesIn(item, "forNodes") }),
  };
  return [[address, JSON.stringify(written)]];
}

function picked(from: Readonly<RawObject>, names: readonly string[], type: "boolean" | "string") {
  return Object.fromEntries(names.flatMap((name) => (typeof from[name] === type ? [[name, from[name]]] : [])));
}

function nonEmpty(fields: Readonly<RawObject>): Readonly<RawObject> | undefined {
  return Object.values(fields).some((value) => value !== undefined) ? fields : undefined;
}

function namesIn(endpoint: RawObject, hint: "forZones" | "forNodes") {
  const names = hintNames(endpoint, hint);
  return names.length === 0 ? undefined : names;
}

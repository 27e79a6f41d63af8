/** The Service of a Gateway: what it is to have, and how that is written over what it has. */

import { createHash } from "node:crypto";
import {
  familyOf,
  GATEWAY_ANNOTATIONS,
  GATEWAY_GROUP,
  GATEWAY_ROUTES,
  type IPFamily,
  objectAt,
  objectsAt,
  parseAddress,
  type RawObject,
} from "@fairlead/base";
import { textsIn } from "../requests.ts";
import {
  GATEWAYS_MANAGER,
  type Gateway,
  type GatewayClass,
  type GatewayService,
  type Listener,
  MANAGER_LABEL,
  type Route,
  type ServicePort,
} from "./objects.ts";
import { PROTOCOLS } from "./routes.ts";

/** What of a Service is the controller's; all else that a Service has is left as it is. */
export interface DesiredService {
  readonly namespace: string;
  readonly name: string;
  readonly type: "LoadBalancer" | "NodePort";
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly ports: readonly Pick<ServicePort, "name" | "port" | "protocol">[];
  /** "": any. */
  readonly loadBalancerIP: string;
  /** Of the addresses that are asked for; absent: those of the cluster. */
  readonly family?: IPFamily;
}

/** MetalLB's own, for two addresses: spec.loadBalancerIP has one, and MetalLB takes no Service with both. */
const METALLB_ANNOTATION = "metallb.io/loadBalancerIPs";

/**
 * @param listeners that are served
 * @param winners the route that has a listener, by its name
 */
export function desiredService(
  gateway: Gateway,
  ofClass: GatewayClass,
  listeners: readonly Listener[],
  winners: ReadonlyMap<string, Route | undefined>,
): DesiredService {
  const { namespace, name, className, infrastructure } = gateway;
  const asked = askedAddresses(gateway);
  const families = new Set(asked.map(familyOf));
  const [family] = families;
  const given = Object.keys(infrastructure.annotations).sort();
  const routes = routesText(listeners, winners);
  return {
    namespace,
    name: serviceName(gateway),
    type: ofClass.addresses === "node-ports" ? "NodePort" : "LoadBalancer",
    labels: {
      ...infrastructure.labels,
      [`${GATEWAY_GROUP}/gateway-name`]: labelValue(name),
      [`${GATEWAY_GROUP}/gateway-class-name`]: labelValue(className),
      [MANAGER_LABEL]: GATEWAYS_MANAGER,
    },
    annotations: {
      ...(asked.length > 1 && { [METALLB_ANNOTATION]: asked.join(",") }),
      ...infrastructure.annotations,
      ...(given.length > 0 && { [GATEWAY_ANNOTATIONS]: given.join(",") }),
      ...(routes !== "" && { [GATEWAY_ROUTES]: routes }),
    },
    ports: listeners.map((one) => ({
      name: shortName(one.name),
      port: one.port,
      protocol: PROTOCOLS.get(one.protocol)?.protocol ?? "TCP",
    })),
    loadBalancerIP: asked.length === 1 ? (asked[0] ?? "") : "",
    ...(family !== undefined && families.size === 1 && { family }),
  };
}

/** Characters of the annotation, which is for readers: ports beyond name no route. */
const MOST_ROUTES = 4_096;

function routesText(listeners: readonly Listener[], winners: ReadonlyMap<string, Route | undefined>): string {
  return listeners.reduce((text, { name }) => {
    const route = winners.get(name);
    if (route === undefined) return text;
    const one = `${text === "" ? "" : ","}${shortName(name)}=${route.namespace}/${route.name}`;
    return text.length + one.length > MOST_ROUTES ? text : text + one;
  }, "");
}

/** In their canonical form. */
export function askedAddresses({ addresses }: Gateway): readonly string[] {
  return addresses.flatMap(({ value }) => parseAddress(value)?.text ?? []);
}

/** Whether a Service of the Gateway is other than it is to be. */
export function differs({ type, ports, own }: GatewayService, desired: DesiredService): boolean {
  if (own === undefined) return true;
  const has = (annotations: Readonly<Record<string, string>>) =>
    Object.entries(annotations).every(([key, value]) => own.annotations[key] === value);
  return (
    type !== desired.type ||
    own.loadBalancerIP !== desired.loadBalancerIP ||
    sorted(own.labels) !== sorted(desired.labels) ||
    !has(desired.annotations) ||
    staleAnnotations(own.annotations, desired).length > 0 ||
    JSON.stringify(ports.map(({ name, port, protocol }) => [name, port, protocol])) !==
      JSON.stringify(desired.ports.map(({ name, port, protocol }) => [name, port, protocol]))
  );
}

/** The Service as it is created. With blockOwnerDeletion some clusters ask for more rights. */
export function newService(desired: DesiredService, { name, uid }: Gateway): RawObject {
  const { namespace, family, labels, annotations } = desired;
  const owner = { apiVersion: `${GATEWAY_GROUP}/v1`, kind: "Gateway", name, uid, controller: true };
  return serviceWith(desired, {
    apiVersion: "v1",
    kind: "Service",
    metadata: { namespace, name: desired.name, labels, annotations, ownerReferences: [owner] },
    // MetalLB gives an address to a Service of the same family only.
    spec:
      family === undefined
        ? { ipFamilyPolicy: "PreferDualStack" }
        : { ipFamilyPolicy: "SingleStack", ipFamilies: [family] },
  });
}

/** A Service as it is there, with what it is to have. Node ports, policies and all that others write stay. */
export function serviceWith(desired: DesiredService, raw: RawObject): RawObject {
  const [metadata, spec] = [objectAt(raw, "metadata"), objectAt(raw, "spec")];
  const stale = new Set(staleAnnotations(textsIn(metadata["annotations"]), desired));
  const kept = Object.entries(textsIn(metadata["annotations"])).filter(([key]) => !stale.has(key));
  const { loadBalancerIP: _, ...others } = spec;
  const old = objectsAt(spec, "ports");
  return {
    ...raw,
    metadata: {
      ...metadata,
      labels: desired.labels,
      annotations: { ...Object.fromEntries(kept), ...desired.annotations },
    },
    spec: {
      ...others,
      type: desired.type,
      ports: desired.ports.map(({ name, port, protocol }) => ({
        ...old.find((one) => one["port"] === port && (one["protocol"] ?? "TCP") === protocol),
        name,
        port,
        protocol,
      })),
      ...(desired.loadBalancerIP !== "" && { loadBalancerIP: desired.loadBalancerIP }),
    },
  };
}

/** The name of a Gateway's Service, as GEP-1762 forms it. */
export function serviceName({ name, className }: Pick<Gateway, "name" | "className">): string {
  return shortName(`${name}-${className}`);
}

/** A text as a DNS label of at most 63 characters: other texts are cut, and distinguished by a hash. */
function shortName(text: string): string {
  if (/^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text)) return text;
  const readable = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replace(/^[^a-z]+/, "")
    .slice(0, 52);
  return `${readable.replace(/-+$/, "") || "g"}-${digest(text)}`;
}

/** Ten digits that distinguish texts in names. */
export function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 10);
}

/** As far as label values go, a name stays what it is. */
function labelValue(text: string): string {
  return /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/.test(text) ? text : shortName(text);
}

/** Annotations of ours that it is no longer to have. */
function staleAnnotations(there: Readonly<Record<string, string>>, { annotations }: DesiredService): readonly string[] {
  const given = there[GATEWAY_ANNOTATIONS]?.split(",") ?? [];
  const ours = [...given, GATEWAY_ANNOTATIONS, METALLB_ANNOTATION, GATEWAY_ROUTES];
  return ours.filter((key) => Object.hasOwn(there, key) && !Object.hasOwn(annotations, key));
}

function sorted(texts: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.entries(texts).sort(([one], [other]) => (one < other ? -1 : 1)));
}

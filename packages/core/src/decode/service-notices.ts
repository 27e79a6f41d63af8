/** What a valid Service does that its author may not expect: a word for each, by the field that is at fault. */

import {
  familyOf,
  fieldsOf,
  IP_FAMILIES,
  type IPFamily,
  isAbsent,
  itemsOf,
  parseAddressLeniently,
  parseCIDRLeniently,
  type RawObject,
  stringOf,
} from "@fairlead/base";
import type { Service } from "../objects.ts";
import type { ProblemList } from "../problem.ts";
import { onlyLocal } from "../traffic-policy.ts";
import { ANNOTATION_PREFIX, OWN_ANNOTATIONS } from "./annotations.ts";
import { arrivesAsSent, IP_MODES, LOAD_BALANCER_IP_MODE } from "./fields.ts";

/** Annotation of a Service: which clients may use its node ports (`nodePortRanges`). */
export const NODE_PORT_SOURCE_RANGES = `${ANNOTATION_PREFIX}node-port-source-ranges`;

/** Ports of a node's own programs, which a Service must not take from it. */
const NODE_PROGRAMS: ReadonlyMap<number, string> = new Map([
  [22, "SSH"],
  [2379, "etcd"],
  [2380, "etcd"],
  [6443, "the API server"],
  [10_249, "the proxy's metrics"],
  [10_250, "the kubelet"],
  [10_256, "the proxy's health check"],
  [10_257, "the controller manager"],
  [10_259, "the scheduler"],
]);

/** The program of a node that listens on a port, as far as it is the same everywhere. */
export function nodeProgram(protocol: string, port: number): string | undefined {
  return protocol === "TCP" ? NODE_PROGRAMS.get(port) : undefined;
}

/** Adds what there is to say about a Service that was read. */
export function noteService(raw: RawObject, annotations: RawObject, service: Service, problems: ProblemList): void {
  const spec = fieldsOf(raw["spec"]);
  const type = stringOf(spec["type"]) || "ClusterIP";
  const ingress = itemsOf(fieldsOf(fieldsOf(raw["status"])["loadBalancer"])["ingress"]).map(fieldsOf);
  const seen: Seen = { spec, type, ingress, annotations, service, problems };
  noteRanges(seen);
  noteIngress(seen);
  noteIPMode(seen);
  noteFamilies(seen);
  notePorts(seen);
  notePolicies(seen);
  noteAnnotations(annotations, problems);
}

interface Seen {
  readonly spec: RawObject;
  readonly type: string;
  /** status.loadBalancer.ingress */
  readonly ingress: readonly RawObject[];
  readonly annotations: RawObject;
  readonly service: Service;
  readonly problems: ProblemList;
}

const RANGES = "spec.loadBalancerSourceRanges";

function noteRanges({ spec, type, ingress, annotations, service, problems }: Seen): void {
  const written = itemsOf(spec["loadBalancerSourceRanges"]).flatMap((one) => stringOf(one)?.trim() || []);
  if (written.length === 0) return;
  if (type !== "LoadBalancer") {
    problems.add(RANGES, written, `has no effect with type ${type}`, "note");
    return;
  }
  const ranges = written.flatMap((one) => parseCIDRLeniently(one) ?? []);
  for (const family of IP_FAMILIES) {
    const own = ranges.filter((range) => range.family === family);
    const addresses = service.loadBalancerIPs.filter((address) => familyOf(address) === family);
    if (own.length === 0 && addresses.length > 0 && !service.unreadableSourceRanges)
      problems.add(RANGES, written, `has no ${family} range: ${addresses.join(", ")} is open to every client`, "open");
    if (own.length > 1 && own.some(({ prefixLength }) => prefixLength === 0))
      problems.add(RANGES, written, `has a range of all ${family} clients: the others have no effect`, "note");
  }
  const nodePorts = service.ports.flatMap(({ nodePort }) => nodePort ?? []);
  if (nodePorts.length > 0 && annotations[NODE_PORT_SOURCE_RANGES] === undefined) {
    const reason = `does not limit the node ports: every client that reaches a node may use ${nodePorts.join(", ")}; the annotation ${NODE_PORT_SOURCE_RANGES} does`;
    problems.add(RANGES, undefined, reason, "note");
  }
  if (service.externalIPs.length > 0)
    problems.add(RANGES, undefined, `does not limit the external IPs ${service.externalIPs.join(", ")}`, "note");
  if (ingress.some(({ ipMode }) => !arrivesAsSent(ipMode)))
    problems.add(RANGES, undefined, "is left to the load balancer where the ipMode is Proxy", "note");
}

function noteIngress({ spec, type, ingress, service: { loadBalancerIPs }, problems }: Seen): void {
  const field = "status.loadBalancer.ingress";
  if (type === "LoadBalancer" && ingress.length === 0)
    problems.add(
      field,
      undefined,
      "has no address yet: the cluster's load-balancer controller has to write one",
      "note",
    );
  if (type !== "LoadBalancer" && loadBalancerIPs.length > 0)
    problems.add(field, loadBalancerIPs, `is served though the type is ${type}`, "note");
  ingress.forEach(({ ip, hostname }, i) => {
    if (!stringOf(ip) && stringOf(hostname))
      problems.add(`${field}[${i}].hostname`, hostname, "has no ip: packets go to the load balancer and back", "note");
  });
  const asked = parseAddressLeniently(stringOf(spec["loadBalancerIP"]) ?? "")?.text;
  if (asked !== undefined && loadBalancerIPs.length > 0 && !loadBalancerIPs.includes(asked))
    problems.add(
      "spec.loadBalancerIP",
      asked,
      `is not in status: ${loadBalancerIPs.join(", ")} is served instead`,
      "note",
    );
}

function noteIPMode({ type, ingress, annotations, problems }: Seen): void {
  const value = annotations[LOAD_BALANCER_IP_MODE];
  if (value === undefined) return;
  const field = "metadata.annotations";
  if (!IP_MODES.includes(value)) {
    problems.add(field, value, `${LOAD_BALANCER_IP_MODE} must be ${IP_MODES.join(" or ")}; using what status says`);
    return;
  }
  const own = ingress.flatMap(({ ip, ipMode }) => (stringOf(ip) && ipMode === "Proxy" ? [ip] : []));
  const others = ingress.flatMap(({ ip }) => (stringOf(ip) && !own.includes(ip) ? [ip] : []));
  if (type !== "LoadBalancer" && ingress.length === 0)
    problems.add(field, value, `${LOAD_BALANCER_IP_MODE} has no effect with type ${type}`, "note");
  else if (value === "VIP" && own.length > 0)
    problems.add(
      field,
      value,
      `${LOAD_BALANCER_IP_MODE} has no effect on ${own.join(", ")}: status says Proxy`,
      "note",
    );
  else if (value === "Proxy" && others.length > 0)
    problems.add(
      field,
      value,
      `${LOAD_BALANCER_IP_MODE} leaves ${others.join(", ")} to the load balancer, with spec.loadBalancerSourceRanges`,
      "note",
    );
}

/** An address of a family in which the Service has no ClusterIP has no endpoints, and no rules. */
function noteFamilies({ spec, service, problems }: Seen): void {
  const { clusterIPs, externalIPs, loadBalancerIPs } = service;
  const isServed = (family: IPFamily) => clusterIPs.some((ip) => familyOf(ip) === family);
  const lost = (field: string, addresses: readonly string[]) => {
    for (const address of addresses.filter((one) => !isServed(familyOf(one)))) {
      const reason = `is not served: the Service has no ${familyOf(address)} ClusterIP (spec.ipFamilies)`;
      problems.add(field, address, reason, "lost");
    }
  };
  lost("spec.externalIPs", externalIPs);
  lost("status.loadBalancer.ingress", loadBalancerIPs);
  for (const address of externalIPs.filter((one) => clusterIPs.includes(one)))
    problems.add("spec.externalIPs", address, "is the Service's own ClusterIP, which is served as such", "note");
  for (const family of IP_FAMILIES.filter((one) => itemsOf(spec["ipFamilies"]).includes(one) && !isServed(one)))
    problems.add("spec.ipFamilies", family, "has no ClusterIP, so the Service is not served in this family", "note");
}

function notePorts({ type, service: { ports, externalIPs, loadBalancerIPs }, problems }: Seen): void {
  for (const { name, protocol, port, nodePort } of ports) {
    const field = `spec.ports[name=${JSON.stringify(name)}].nodePort`;
    if (nodePort === undefined) {
      const isUnreachable = type === "NodePort" && externalIPs.length === 0 && loadBalancerIPs.length === 0;
      if (isUnreachable)
        problems.add(field, undefined, `is absent: port ${port} is open inside the cluster only`, "note");
      continue;
    }
    const program = nodeProgram(protocol, nodePort);
    if (program !== undefined)
      problems.add(field, nodePort, `takes the port of ${program} on every node away from it`, "lost");
    if (type === "ClusterIP") problems.add(field, nodePort, "is open though the type is ClusterIP", "note");
  }
}

const DISTRIBUTIONS: readonly unknown[] = ["PreferClose", "PreferSameZone", "PreferSameNode"];

function notePolicies({ spec, type, service, problems }: Seen): void {
  const note = (field: string, reason: string) => problems.add(`spec.${field}`, spec[field], reason, "note");
  const isExternal = type !== "ClusterIP" || service.externalIPs.length > 0;
  if (!isExternal && spec["externalTrafficPolicy"] === "Local")
    note("externalTrafficPolicy", "has no effect: clients outside the cluster have no address of this Service");
  const check = spec["healthCheckNodePort"];
  if (!isAbsent(check) && check !== 0 && !(type === "LoadBalancer" && onlyLocal(service.externalTrafficPolicy)))
    note("healthCheckNodePort", "is not opened: it needs type LoadBalancer and externalTrafficPolicy Local");
  const hasNodePorts = service.ports.some(({ nodePort }) => nodePort !== undefined);
  if (service.annotations[NODE_PORT_SOURCE_RANGES] !== undefined && !hasNodePorts)
    problems.add(
      "metadata.annotations",
      service.annotations[NODE_PORT_SOURCE_RANGES],
      `${NODE_PORT_SOURCE_RANGES} has no effect: no port of this Service has a node port`,
      "note",
    );
  if (!isAbsent(spec["sessionAffinityConfig"]) && service.affinitySeconds === undefined)
    note("sessionAffinityConfig", "has no effect without sessionAffinity ClientIP");
  const { trafficDistribution } = service;
  if (trafficDistribution !== undefined && !DISTRIBUTIONS.includes(trafficDistribution))
    note("trafficDistribution", `is unknown and has no effect; it can be ${DISTRIBUTIONS.join(", ")}`);
}

function noteAnnotations(annotations: RawObject, problems: ProblemList): void {
  const { Service: known, GatewayService: ofController } = OWN_ANNOTATIONS;
  for (const name of Object.keys(annotations)) {
    if (!name.startsWith(ANNOTATION_PREFIX) || known.includes(name) || ofController.includes(name)) continue;
    const reason = `${name} is unknown and has no effect; it can be ${known.join(", ")}`;
    problems.add("metadata.annotations", annotations[name], reason);
  }
}

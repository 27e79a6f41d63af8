/** What of Services and pods decides about slices: decoders of both, and of the status that Multus writes on pods. */

import {
  IP_FAMILIES,
  type IPFamily,
  isObject,
  isPort,
  itemsOf,
  numberOf,
  objectAt,
  objectsAt,
  type Protocol,
  parseAddressLeniently,
  parseJSON,
  protocolOf,
  type RawObject,
  stringOf,
  textAt,
  valueAt,
} from "@fairlead/base";
import { textsIn } from "../requests.ts";

/** The network of a Service's endpoints: `name` or `namespace/name` of a NetworkAttachmentDefinition. */
export const SERVICE_NETWORK = "k8s.v1.cni.cncf.io/service-network";

type DecodedNetworkService =
  | { readonly service: NetworkService }
  /** It gets no slices. */
  | { readonly problem: SliceProblem };

/**
 * Reads a core/v1 Service. Never throws.
 *
 * @returns undefined where it does not ask for a network
 */
export function decodeNetworkService(raw: unknown): DecodedNetworkService | undefined {
  const [metadata, spec] = [objectAt(raw, "metadata"), objectAt(raw, "spec")];
  const [namespace, name] = [textAt(metadata, "namespace"), textAt(metadata, "name")];
  const asked = stringOf(valueAt(metadata, "annotations", SERVICE_NETWORK));
  if (namespace === undefined || name === undefined || asked === undefined) return undefined;
  const network = networkName(asked, namespace);
  if (network === undefined) return { problem: invalidName(asked) };
  if (spec["type"] === "ExternalName") return { problem: EXTERNAL_NAME };
  if (spec["clusterIP"] === "None") return { problem: HEADLESS };
  const selector = textsIn(spec["selector"]);
  if (Object.keys(selector).length === 0) return { problem: NO_SELECTOR };
  const distribution = DISTRIBUTIONS[stringOf(spec["trafficDistribution"]) ?? ""];
  const service: NetworkService = {
    namespace,
    name,
    uid: textAt(metadata, "uid") ?? "",
    network,
    labels: labelsIn(metadata),
    selector,
    families: familiesOf(spec),
    ports: objectsAt(spec, "ports").flatMap(portIn),
    publishNotReadyAddresses: spec["publishNotReadyAddresses"] === true,
    terminating: textAt(metadata, "deletionTimestamp") !== undefined,
    ...(distribution && { distribution }),
  };
  return { service };
}

/**
 * Reads a core/v1 Pod. Never throws.
 *
 * @returns undefined for a pod that is no endpoint on a secondary network: in the host's network, ended (`Succeeded`,
 *   `Failed`), without a name, or without an address of its first interface. Upstream's controller leaves out ended
 *   pods and those without an address as well (staging/src/k8s.io/endpointslice, ShouldPodBeInEndpoints). Multus writes
 *   its status before the pod has an address: a pod that starts is not reported as one without a status.
 */
export function decodePod(raw: unknown): Pod | undefined {
  const [metadata, spec, status] = [objectAt(raw, "metadata"), objectAt(raw, "spec"), objectAt(raw, "status")];
  const [namespace, name] = [textAt(metadata, "namespace"), textAt(metadata, "name")];
  const phase = status["phase"];
  if (namespace === undefined || name === undefined || spec["hostNetwork"] === true) return undefined;
  if (phase === "Succeeded" || phase === "Failed" || itemsOf(status["podIPs"]).length === 0) return undefined;
  const nodeName = textAt(spec, "nodeName");
  const networks = stringOf(valueAt(metadata, "annotations", NETWORK_STATUS));
  return {
    namespace,
    name,
    uid: textAt(metadata, "uid") ?? "",
    labels: labelsIn(metadata),
    ready: itemsOf(status["conditions"]).some(isReady),
    terminating: textAt(metadata, "deletionTimestamp") !== undefined,
    namedPorts: [...objectsAt(spec, "containers"), ...sidecars(spec)].flatMap(portsOf),
    ...(nodeName !== undefined && { nodeName }),
    ...(networks !== undefined && { networks: readNetworkStatus(networks) }),
  };
}

/** Shared with Services: both have labels that are text to text. */
export function labelsIn(metadata: RawObject): Readonly<Record<string, string>> {
  return textsIn(metadata["labels"]);
}

/** Where Multus writes what a pod got (Kubernetes Network Plumbing WG, CRD standard v1.3, §5). */
export const NETWORK_STATUS = "k8s.v1.cni.cncf.io/network-status";

export interface NetworkStatus {
  /** As Multus writes it: `namespace/name` of a NetworkAttachmentDefinition; the default one may have no slash. */
  readonly network: string;
  /** The pod's default route and `status.podIPs` are of this one. */
  readonly isDefault: boolean;
  /** Canonical addresses of both families. */
  readonly addresses: readonly string[];
}

/** The parts of a core/v1 Pod that endpoints are made of. Ten thousand of these are kept, so the rest is dropped. */
export interface Pod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Of metadata.labels: what Services select by. */
  readonly labels: Readonly<Record<string, string>>;
  /** spec.nodeName; absent: not scheduled. */
  readonly nodeName?: string;
  /** Condition Ready is True. */
  readonly ready: boolean;
  /** metadata.deletionTimestamp is set. */
  readonly terminating: boolean;
  /** Ports of containers that have a name: what a Service's named targetPort stands for. */
  readonly namedPorts: readonly NamedPort[];
  /** "invalid": the annotation is there and cannot be read. Absent: no annotation yet. */
  readonly networks?: readonly NetworkStatus[] | "invalid";
}

/** A Service that asks for endpoints on a secondary network, as far as its slices need it. */
export interface NetworkService {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** `namespace/name` of a NetworkAttachmentDefinition. */
  readonly network: string;
  /** Its slices carry them too, as upstream's do: a proxy chooses slices by them. */
  readonly labels: Readonly<Record<string, string>>;
  /** Pods have all of these labels. Never empty. */
  readonly selector: Readonly<Record<string, string>>;
  readonly families: readonly IPFamily[];
  readonly ports: readonly ServicePort[];
  readonly publishNotReadyAddresses: boolean;
  /** metadata.deletionTimestamp is set: it gets no new slices, which the garbage collector would have to find again. */
  readonly terminating: boolean;
  /** spec.trafficDistribution: endpoints get hints by it. */
  readonly distribution?: "PreferSameZone" | "PreferSameNode";
}

export interface ServicePort {
  /** "" where the Service has one unnamed port. */
  readonly name: string;
  readonly protocol: Protocol;
  /** A port's number, or the name of a container's port. */
  readonly target: number | string;
}

/** Why a Service gets no slices, or a pod no endpoint: the reason of an Event on the Service. */
export interface SliceProblem {
  readonly reason: ProblemReason;
  /** A sentence: what is wrong, and what would be right. */
  readonly message: string;
  /** The pod that is left out; absent: it is the Service. */
  readonly pod?: string;
}

export type ProblemReason =
  | "AddressInServiceCIDR"
  | "ExternalName"
  | "HeadlessService"
  | "InvalidNetworkName"
  | "InvalidNetworkStatus"
  | "NetworkNotFound"
  | "NoNetworkAddress"
  | "NoNetworkStatus"
  | "NoSelector"
  | "SeveralInterfaces";

const HEADLESS: SliceProblem = {
  reason: "HeadlessService",
  message: `a headless Service has no endpoints by annotation ${SERVICE_NETWORK}: DNS would answer with those of the default network as well; remove clusterIP: None or the annotation`,
};

const EXTERNAL_NAME: SliceProblem = {
  reason: "ExternalName",
  message: `a Service of type ExternalName has no endpoints; remove annotation ${SERVICE_NETWORK}`,
};

const NO_SELECTOR: SliceProblem = {
  reason: "NoSelector",
  message: `annotation ${SERVICE_NETWORK} needs spec.selector; without one, EndpointSlices are written by hand`,
};

const DISTRIBUTIONS: Readonly<Record<string, NetworkService["distribution"]>> = {
  PreferClose: "PreferSameZone",
  PreferSameZone: "PreferSameZone",
  PreferSameNode: "PreferSameNode",
};

const DNS_LABEL = "[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?";
const NAME = new RegExp(`^(?:(${DNS_LABEL})/)?(${DNS_LABEL}(?:\\.${DNS_LABEL})*)$`);

/** As annotation `networks` of pods: without a namespace, the object's own. An interface (`@net1`) is not taken. */
function networkName(text: string, namespace: string): string | undefined {
  const found = NAME.exec(text.trim());
  return found === null ? undefined : `${found[1] ?? namespace}/${found[2]}`;
}

function invalidName(text: string): SliceProblem {
  const shown = JSON.stringify(text.slice(0, 80));
  return {
    reason: "InvalidNetworkName",
    message: `annotation ${SERVICE_NETWORK}: ${shown} must be one NetworkAttachmentDefinition, as name or namespace/name`,
  };
}

/** The API server fills ipFamilies in; a manifest may lack it. */
function familiesOf(spec: RawObject): NetworkService["families"] {
  const listed = IP_FAMILIES.filter((family) => itemsOf(spec["ipFamilies"]).includes(family));
  return listed.length > 0 ? listed : ["IPv4"];
}

function portIn(item: RawObject): readonly ServicePort[] {
  const [protocol, target] = [protocolOf(item["protocol"]), item["targetPort"]];
  // Absent and 0: the Service's own port.
  const resolved = typeof target === "string" && target !== "" ? target : isPort(target) ? target : item["port"];
  if (protocol === undefined || !(typeof resolved === "string" || isPort(resolved))) return [];
  return [{ name: textAt(item, "name") ?? "", protocol, target: resolved }];
}

/** Init containers that go on running (KEP-753) serve as containers do. */
function sidecars(spec: RawObject): readonly RawObject[] {
  return objectsAt(spec, "initContainers").filter(({ restartPolicy }) => restartPolicy === "Always");
}

function isReady(condition: unknown): boolean {
  return valueAt(condition, "type") === "Ready" && valueAt(condition, "status") === "True";
}

interface NamedPort {
  readonly name: string;
  readonly protocol: Protocol;
  /** 1…65535 */
  readonly port: number;
}

function portsOf(container: RawObject): readonly NamedPort[] {
  return objectsAt(container, "ports").flatMap((item) => {
    const [name, protocol, port] = [
      textAt(item, "name"),
      protocolOf(item["protocol"]),
      numberOf(item["containerPort"]),
    ];
    return name === undefined || protocol === undefined || !isPort(port) ? [] : [{ name, protocol, port }];
  });
}

/** A longer one is not read: a pod has a handful of interfaces. */
const LONGEST = 65_536;

/**
 * Reads the annotation's value.
 *
 * @returns "invalid" where it is not a list of objects, or an entry has no name or a text that is not an address: what
 *   is half right would leave out endpoints without a reason
 */
function readNetworkStatus(value: string): readonly NetworkStatus[] | "invalid" {
  if (value.length > LONGEST) return "invalid";
  const list = parseJSON(value);
  if (!Array.isArray(list)) return "invalid";
  const statuses = list.map(statusIn);
  return statuses.every((status) => status !== undefined) ? statuses : "invalid";
}

function statusIn(entry: unknown): NetworkStatus | undefined {
  const network = isObject(entry) ? stringOf(entry["name"]) : undefined;
  if (network === undefined || network === "") return undefined;
  const addresses = itemsOf(valueAt(entry, "ips")).map((ip) =>
    typeof ip === "string" ? parseAddressLeniently(ip)?.text : undefined,
  );
  if (!addresses.every((address) => address !== undefined)) return undefined;
  return { network, isDefault: valueAt(entry, "default") === true, addresses: [...new Set(addresses)] };
}

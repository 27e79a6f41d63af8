/** Fields that several kinds have: metadata, names, addresses and ports, with what is refused in them. */

import {
  type Address,
  fieldsOf,
  isAbsent,
  isPort,
  itemsOf,
  parseAddressLeniently,
  protocolOf,
  type RawObject,
  stringOf,
} from "@fairlead/base";
import { compact } from "../data.ts";
import type { Protocol, ServicePortSpec } from "../objects.ts";
import type { Problem, ProblemList } from "../problem.ts";

/**
 * What came of a raw object. Without `object` nothing of it is served; whatever was known under its name has to go.
 */
export interface Decoded<T> {
  /** As the object has them, unchecked: good for removing what was known under them, not for printing. */
  readonly namespace: string;
  /** As `namespace`. */
  readonly name: string;
  /** The decoded object; absent: nothing of it is served. */
  readonly object?: T;
  /** Why an object that is in order is not ours to serve (headless, ExternalName, another proxy's …). */
  readonly ignored?: string;
  /** What was skipped: parts of the object or, without `object`, all of it. */
  readonly problems: readonly Problem[];
  /** What is valid and does other than it seems to ask for; absent: nothing. */
  readonly notices?: readonly Problem[];
}

/** The parts of ObjectMeta that decoders read. Unchecked: see `checkNames`. */
export interface Metadata {
  readonly namespace: string;
  readonly name: string;
  readonly labels: RawObject;
  readonly annotations: RawObject;
  readonly creationTimestamp: unknown;
  readonly deletionTimestamp: unknown;
}

export function metadataOf(raw: unknown): Metadata {
  const metadata = fieldsOf(fieldsOf(raw)["metadata"]);
  return {
    namespace: stringOf(metadata["namespace"]) ?? "",
    name: stringOf(metadata["name"]) ?? "",
    labels: fieldsOf(metadata["labels"]),
    annotations: fieldsOf(metadata["annotations"]),
    creationTimestamp: metadata["creationTimestamp"],
    deletionTimestamp: metadata["deletionTimestamp"],
  };
}

/** False, with a problem for each bad one, if an object with these names must not be taken in. */
export function checkNames(metadata: Metadata, problems: ProblemList): boolean {
  const namespace = checkName("metadata.namespace", metadata.namespace, problems);
  const name = checkName("metadata.name", metadata.name, problems);
  return namespace && name;
}

const SUBDOMAIN_FORM = "must be lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit";

export function checkName(field: string, name: string, problems: ProblemList): boolean {
  if (isSubdomain(name)) return true;
  problems.add(field, name, SUBDOMAIN_FORM);
  return false;
}

export const LABEL_FORM =
  "must be at most 63 lower-case letters, digits and '-', beginning and ending with a letter or digit";

/**
 * Names as the API server lets them pass (RFC 1123). Names end up in rule texts and chain names, and manifests are read
 * without an API server in between, so they are checked here whatever the source.
 */

const LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

export function isLabel(name: string): boolean {
  return LABEL.test(name);
}

/**
 * Reads one address of a field and reports it if it can't be used.
 *
 * @param refused the kinds of special addresses that this field may not hold
 */
export function readAddress(
  field: string,
  value: unknown,
  refused: readonly SpecialAddress[],
  problems: ProblemList,
): Address | undefined {
  const address = typeof value === "string" ? parseAddressLeniently(value) : undefined;
  if (address === undefined) {
    if (!isAbsent(value) && value !== "") problems.add(field, value, "must be an IPv4 or IPv6 address");
    return undefined;
  }
  const special = specialKind(address);
  if (special === undefined || !refused.includes(special)) return address;
  problems.add(field, value, `must not be a ${special} address`);
  return undefined;
}

/** Canonical addresses of a list field, without duplicates, in order. */
export function readAddresses(
  field: string,
  values: readonly unknown[],
  refused: readonly SpecialAddress[],
  problems: ProblemList,
): readonly string[] {
  const found = new Set<string>();
  values.forEach((value, i) => {
    const address = readAddress(`${field}[${i}]`, value, refused, problems);
    if (address !== undefined) found.add(address.text);
  });
  return compact([...found]);
}

/** reserved: 0.0.0.0/8 and 240.0.0.0/4. */
export type SpecialAddress =
  | "unspecified"
  | "loopback"
  | "link-local"
  | "IPv6 link-local"
  | "multicast"
  | "reserved"
  | "broadcast";

/**
 * What no host can be reached by. Upstream's ValidateEndpointIP, which external IPs and endpoints have to pass, lets
 * reserved addresses and multicast pass but for 224.0.0.0/24 and ff02::/16 ("probably a bug", it says).
 */
export const UNUSABLE: readonly SpecialAddress[] = ["unspecified", "multicast", "reserved", "broadcast"];

/** What, alongside that, is another host for each client. */
export const AMBIGUOUS: readonly SpecialAddress[] = ["loopback", "link-local", "IPv6 link-local"];

/** Which special kind of address it is. Takes canonical text; undefined: an ordinary address. */
export function specialKind(address: Address): SpecialAddress | undefined {
  return address.family === "IPv4" ? specialIPv4(address.text) : specialIPv6(address.text);
}

/** The usable ports of a Service. A bad port is reported and left out; a bad node port costs only the node port. */
export function readServicePorts(spec: RawObject, intern: Intern, problems: ProblemList): readonly ServicePortSpec[] {
  const items = itemsOf(spec["ports"]);
  if (items.length === 0) problems.add("spec.ports", spec["ports"], "must have at least one port");
  const ports = new Map<string, ServicePortSpec>();
  items.forEach((item, i) => {
    const field = `spec.ports[${i}]`;
    const port = readServicePort(field, fieldsOf(item), intern, problems);
    if (port === undefined) return;
    const key = `${port.name}/${port.protocol}`;
    if (ports.has(key)) problems.add(`${field}.name`, port.name, `is the second ${port.protocol} port of this name`);
    else ports.set(key, port);
  });
  return [...ports.values()];
}

/**
 * Annotation of a Service: "Proxy" or "VIP" (the default), what its load-balancer addresses are where the cloud does
 * not say (KEP-1860). The API server fills in VIP where the cloud sets no ipMode, so that "Proxy" goes before that.
 */
export const LOAD_BALANCER_IP_MODE = "fairlead.dev/load-balancer-ip-mode";

export const IP_MODES: readonly unknown[] = ["Proxy", "VIP"];

/** Whether, as status says, packets to an address of a load balancer come here with that address still on them. */
export function arrivesAsSent(ipMode: unknown): boolean {
  return isAbsent(ipMode) || ipMode === "VIP";
}

/** Absent means TCP, as in the API. */
export function readProtocol(field: string, value: unknown, problems: ProblemList): Protocol | undefined {
  const known = protocolOf(value);
  if (known === undefined) problems.add(field, value, "must be TCP, UDP or SCTP");
  return known;
}

/** Gives equal strings as one string. Decoders take one so that ten thousand node names stay one string each. */
export type Intern = (text: string) => string;

/** Keeps strings apart: nothing is remembered. */
export const keepAsIs: Intern = (text) => text;

/**
 * An interner with a bounded memory.
 *
 * @param limit how many strings it remembers; it forgets them all when it is full
 */
export function createIntern(limit = 10_000): Intern {
  const known = new Map<string, string>();
  return (text) => {
    const first = known.get(text);
    if (first !== undefined) return first;
    if (known.size >= limit) known.clear();
    known.set(text, text);
    return text;
  };
}

const SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const LONGEST_SUBDOMAIN = 253;

export function isSubdomain(name: string): boolean {
  return name.length <= LONGEST_SUBDOMAIN && (LABEL.test(name) || SUBDOMAIN.test(name));
}

function specialIPv4(text: string): SpecialAddress | undefined {
  const first = Number.parseInt(text, 10);
  if (first === 0) return text === "0.0.0.0" ? "unspecified" : "reserved";
  if (first === 127) return "loopback";
  if (first >= 240) return text === "255.255.255.255" ? "broadcast" : "reserved";
  if (first >= 224) return "multicast";
  return text.startsWith("169.254.") ? "link-local" : undefined;
}

function specialIPv6(text: string): SpecialAddress | undefined {
  if (text === "::") return "unspecified";
  if (text === "::1") return "loopback";
  if (/^fe[89ab][0-9a-f]:/.test(text)) return "IPv6 link-local";
  return /^ff[0-9a-f]{2}:/.test(text) ? "multicast" : undefined;
}

const PORT_FORM = "must be a number from 1 to 65535";

function readServicePort(
  field: string,
  item: RawObject,
  intern: Intern,
  problems: ProblemList,
): ServicePortSpec | undefined {
  const name = readPortName(`${field}.name`, item["name"], problems);
  const protocol = readProtocol(`${field}.protocol`, item["protocol"], problems);
  const port = readPort(`${field}.port`, item["port"], problems);
  if (name === undefined || protocol === undefined || port === undefined) return undefined;
  const nodePort = readNodePort(`${field}.nodePort`, item["nodePort"], problems);
  const base = { name: intern(name), protocol, port };
  return nodePort === undefined ? base : { ...base, nodePort };
}

/** The name of a Service's port, "" where it has none; undefined: a bad one, reported. */
function readPortName(field: string, value: unknown, problems: ProblemList): string | undefined {
  if (isAbsent(value) || value === "") return "";
  if (typeof value === "string" && isLabel(value)) return value;
  problems.add(field, value, LABEL_FORM);
  return undefined;
}

function readPort(field: string, value: unknown, problems: ProblemList): number | undefined {
  if (isPort(value)) return value;
  problems.add(field, value, PORT_FORM);
  return undefined;
}

/** 0 is how the API says none. */
function readNodePort(field: string, value: unknown, problems: ProblemList): number | undefined {
  if (isAbsent(value) || value === 0) return undefined;
  return readPort(field, value, problems);
}

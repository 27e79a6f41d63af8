/** Reads an EndpointSlice of the API. */

import { fieldsOf, IP_FAMILIES, isAbsent, isPort, itemsOf, type RawObject, stringOf } from "@fairlead/base";
import { compact } from "../data.ts";
import type { EndpointSlice, IPFamily, SliceEndpoint, SlicePort } from "../objects.ts";
import { ProblemList } from "../problem.ts";
import {
  AMBIGUOUS,
  checkName,
  checkNames,
  type Decoded,
  type Intern,
  isLabel,
  keepAsIs,
  LABEL_FORM,
  type Metadata,
  metadataOf,
  readAddress,
  readProtocol,
  type SpecialAddress,
  UNUSABLE,
} from "./fields.ts";

const SERVICE_NAME_LABEL = "kubernetes.io/service-name";

interface EndpointSliceOptions {
  /**
   * Endpoints may be on this machine's loopback addresses, which makes sense without a cluster only. Default false.
   */
  readonly loopback?: boolean;
  /** The label that names the slice's Service. Default: `kubernetes.io/service-name`. */
  readonly serviceLabel?: string;
}

/** What no endpoint of a cluster can have as its address. */
const REFUSED: readonly SpecialAddress[] = [...UNUSABLE, ...AMBIGUOUS];

const ALL_BUT_LOOPBACK = REFUSED.filter((kind) => kind !== "loopback");

/**
 * Reads a discovery.k8s.io/v1 EndpointSlice. Never throws: a bad port or endpoint is in `problems` and costs just
 * itself.
 * As upstream, a port without name or number is left out, and a condition that is absent means ready, serving, not
 * terminating.
 */
export function decodeEndpointSlice(
  raw: unknown,
  intern: Intern = keepAsIs,
  { loopback = false, serviceLabel = SERVICE_NAME_LABEL }: EndpointSliceOptions = {},
): Decoded<EndpointSlice> {
  const metadata = metadataOf(raw);
  const { namespace, name } = metadata;
  const slice = fieldsOf(raw);
  const serviceName = stringOf(metadata.labels[serviceLabel]) ?? "";
  const problems = new ProblemList("EndpointSlice", namespace, name, serviceName || undefined);
  const ignored = reasonToIgnore(metadata, slice) ?? (serviceName ? undefined : `has no label ${serviceLabel}`);
  if (ignored !== undefined) {
    if (slice["addressType"] === "FQDN")
      problems.add("addressType", "FQDN", "gives names, which no proxy can use", "lost");
    return { namespace, name, ignored, ...problems.lists };
  }
  const serviceIsGood = checkName(`metadata.labels["${serviceLabel}"]`, serviceName, problems);
  const reading = { intern, refused: loopback ? ALL_BUT_LOOPBACK : REFUSED };
  const object = serviceIsGood ? readSlice(metadata, serviceName, slice, reading, problems) : undefined;
  const decoded = { namespace, name, ...problems.lists };
  return object === undefined ? decoded : { ...decoded, object };
}

const HEADLESS_LABEL = "service.kubernetes.io/headless";
const TRIGGER_TIME_ANNOTATION = "endpoints.kubernetes.io/last-change-trigger-time";

function reasonToIgnore(metadata: Metadata, slice: RawObject): string | undefined {
  if (HEADLESS_LABEL in metadata.labels) return `label ${HEADLESS_LABEL}: a headless service has nothing to proxy`;
  return slice["addressType"] === "FQDN" ? "addressType FQDN cannot be proxied" : undefined;
}

interface EndpointReading {
  readonly family: IPFamily;
  readonly refused: readonly SpecialAddress[];
  readonly intern: Intern;
}

function readSlice(
  metadata: Metadata,
  serviceName: string,
  slice: RawObject,
  reading: Omit<EndpointReading, "family">,
  problems: ProblemList,
): EndpointSlice | undefined {
  const { intern } = reading;
  const family = readFamily(slice["addressType"], problems);
  const namesAreGood = checkNames(metadata, problems);
  if (family === undefined || !namesAreGood) return undefined;
  const base = {
    namespace: intern(metadata.namespace),
    name: metadata.name,
    serviceName,
    family,
    ports: readSlicePorts(itemsOf(slice["ports"]), intern, problems),
    endpoints: readEndpoints(itemsOf(slice["endpoints"]), { ...reading, family }, problems),
  };
  const triggerTime = readTriggerTime(metadata.annotations[TRIGGER_TIME_ANNOTATION], problems);
  const share = readShare(metadata.annotations, itemsOf(slice["endpoints"]).length, problems);
  return triggerTime === undefined ? { ...base, ...share } : { ...base, ...share, triggerTime };
}

/** Annotation of an EndpointSlice: its share of the Service's new connections, split evenly among its endpoints. */
const WEIGHT_ANNOTATION = "fairlead.dev/weight";
/** Annotation of an EndpointSlice without endpoints: "true" has its share refused, in place of given to the others. */
const REFUSED_ANNOTATION = "fairlead.dev/weight-refused";
const HEAVIEST = 1_000_000;

function readShare(
  annotations: RawObject,
  endpoints: number,
  problems: ProblemList,
): Pick<EndpointSlice, "weight" | "refused"> {
  const [weight, refused] = [annotations[WEIGHT_ANNOTATION], annotations[REFUSED_ANNOTATION]];
  const add = (value: unknown, reason: string) => problems.add("metadata.annotations", value, reason);
  const isWeight = typeof weight === "string" && /^\d{1,7}$/.test(weight) && Number(weight) <= HEAVIEST;
  if (!isAbsent(weight) && !isWeight) {
    const reason = `must be a whole number from 0 to ${HEAVIEST}; each endpoint of this slice weighs 1`;
    add(weight, `${WEIGHT_ANNOTATION} ${reason}`);
  }
  const share = isWeight ? { weight: Number(weight) } : {};
  if (isAbsent(refused) || refused === "false") return share;
  if (refused !== "true") add(refused, `${REFUSED_ANNOTATION} must be true or false; using false`);
  else if (!isWeight) add(refused, `${REFUSED_ANNOTATION} needs ${WEIGHT_ANNOTATION}; nothing is refused`);
  else if (endpoints > 0) add(refused, `${REFUSED_ANNOTATION} is for a slice without endpoints; nothing is refused`);
  else return { ...share, refused: true };
  return share;
}

function readFamily(value: unknown, problems: ProblemList): IPFamily | undefined {
  const known = IP_FAMILIES.find((family) => family === value);
  if (known === undefined) problems.add("addressType", value, "must be IPv4 or IPv6");
  return known;
}

function readSlicePorts(items: readonly unknown[], intern: Intern, problems: ProblemList): readonly SlicePort[] {
  const ports = items.flatMap((item, i) => {
    const port = readSlicePort(`ports[${i}]`, fieldsOf(item), intern, problems);
    return port === undefined ? [] : [port];
  });
  return compact(ports);
}

function readSlicePort(field: string, item: RawObject, intern: Intern, problems: ProblemList): SlicePort | undefined {
  const { name, port } = item;
  // Both are allowed by the API and mean "all ports", which no proxy can do: left out, as upstream does.
  if (isAbsent(name) || isAbsent(port) || port === 0) {
    const missing = isAbsent(name) ? "name" : "port";
    problems.add(`${field}.${missing}`, item[missing], `is absent: this port of the slice is not used`, "lost");
    return undefined;
  }
  if (typeof name !== "string" || (name !== "" && !isLabel(name))) {
    problems.add(`${field}.name`, name, LABEL_FORM);
    return undefined;
  }
  const protocol = readProtocol(`${field}.protocol`, item["protocol"], problems);
  if (protocol === undefined) return undefined;
  if (isPort(port)) return { name: intern(name), protocol, port };
  problems.add(`${field}.port`, port, "must be a number from 1 to 65535");
  return undefined;
}

/**
 * Where several endpoints have one address, it is the last of those that don't terminate, else the first, as in
 * upstream's EndpointSliceCache.addEndpoints: a new pod may have the address of one that is not quite gone.
 */
function readEndpoints(
  items: readonly unknown[],
  reading: EndpointReading,
  problems: ProblemList,
): readonly SliceEndpoint[] {
  const endpoints = new Map<string, SliceEndpoint>();
  for (let i = 0; i < items.length; i++) {
    const endpoint = readEndpoint(i, items[i], reading, problems);
    if (endpoint === undefined || (endpoint.terminating && endpoints.has(endpoint.address))) continue;
    endpoints.set(endpoint.address, endpoint);
  }
  return compact([...endpoints.values()]);
}

function readTriggerTime(value: unknown, problems: ProblemList): number | undefined {
  if (isAbsent(value)) return undefined;
  const time = typeof value === "string" ? Date.parse(value) : Number.NaN;
  if (!Number.isNaN(time)) return time;
  problems.add(
    `metadata.annotations["${TRIGGER_TIME_ANNOTATION}"]`,
    value,
    "must be an RFC 3339 time, such as 2026-01-31T12:00:00Z",
  );
  return undefined;
}

/**
 * Reads one endpoint; undefined: not usable, reported. Only its first address counts: since KEP-752 the others have no
 * meaning.
 */
function readEndpoint(
  index: number,
  value: unknown,
  reading: EndpointReading,
  problems: ProblemList,
): SliceEndpoint | undefined {
  const { intern } = reading;
  const item = fieldsOf(value);
  const address = readEndpointAddress(index, itemsOf(item["addresses"])[0], reading, problems);
  if (address === undefined) return undefined;
  const conditions = fieldsOf(item["conditions"]);
  noteEndpoint(index, itemsOf(item["addresses"]).length, conditions, problems);
  const ready = conditions["ready"] !== false;
  const serving = conditions["serving"] !== false;
  const terminating = conditions["terminating"] === true;
  const node = item["nodeName"];
  // Two literals, not one that grows: a hundred thousand of these are kept, and each keeps just its own fields.
  const endpoint: SliceEndpoint =
    typeof node === "string" && node !== ""
      ? { address, ready, serving, terminating, nodeName: intern(node) }
      : { address, ready, serving, terminating };
  return withHints(endpoint, item["hints"], intern);
}

const CONDITIONS = ["ready", "serving", "terminating"];

function noteEndpoint(index: number, addresses: number, conditions: RawObject, problems: ProblemList): void {
  if (addresses > 1) {
    const reason = "has several addresses: only the first is used";
    problems.add(`endpoints[${index}].addresses`, undefined, reason, "note");
  }
  for (const name of CONDITIONS) {
    const value = conditions[name];
    if (isAbsent(value) || typeof value === "boolean") continue;
    problems.add(`endpoints[${index}].conditions.${name}`, value, "must be true or false; taken as absent");
  }
}

function readEndpointAddress(
  index: number,
  value: unknown,
  { family, refused }: EndpointReading,
  problems: ProblemList,
): string | undefined {
  const field = `endpoints[${index}].addresses[0]`;
  if (value === undefined || value === null || value === "") {
    problems.add(field, value, "is required");
    return undefined;
  }
  const address = readAddress(field, value, refused, problems);
  if (address === undefined || address.family === family) return address?.text;
  problems.add(field, value, `must be an ${family} address, as the slice's addressType says`);
  return undefined;
}

function withHints(endpoint: SliceEndpoint, value: unknown, intern: Intern): SliceEndpoint {
  if (value === undefined || value === null) return endpoint;
  const hints = fieldsOf(value);
  const zoneHints = hintNames(hints["forZones"], intern);
  const nodeHints = hintNames(hints["forNodes"], intern);
  return {
    ...endpoint,
    ...(zoneHints.length > 0 ? { zoneHints } : undefined),
    ...(nodeHints.length > 0 ? { nodeHints } : undefined),
  };
}

function hintNames(value: unknown, intern: Intern): readonly string[] {
  const names = itemsOf(value).flatMap((item) => {
    const { name } = fieldsOf(item);
    return typeof name === "string" ? [intern(name)] : [];
  });
  return compact(names);
}

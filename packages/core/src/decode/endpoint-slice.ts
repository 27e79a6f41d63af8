import { fieldsOf, IP_FAMILIES, isAbsent, isPort, itemsOf, type RawObject, stringOf } from "@fairlead/base";
import { compact } from "../data/compact.ts";
import type { EndpointSlice, IPFamily, SliceEndpoint, SlicePort } from "../objects.ts";
import { ProblemList } from "../problem.ts";
import type { Decoded } from "./decoded.ts";
import { type EndpointReading, REFUSED, readEndpoint } from "./endpoint.ts";
import { type Intern, keepAsIs } from "./intern.ts";
import { checkName, checkNames, type Metadata, metadataOf } from "./metadata.ts";
import { isLabel, LABEL_FORM } from "./names.ts";
import { readProtocol } from "./service-ports.ts";

const SERVICE_NAME_LABEL = "kubernetes.io/service-name";
const HEADLESS_LABEL = "service.kubernetes.io/headless";
const TRIGGER_TIME_ANNOTATION = "endpoints.kubernetes.io/last-change-trigger-time";

export interface EndpointSliceOptions {
  /**
   * Endpoints may be on this machine's loopback addresses, which makes sense without a cluster only. Default false.
   */
  readonly loopback?: boolean;
  /** The label that names the slice's Service. Default: `kubernetes.io/service-name`. */
  readonly serviceLabel?: string;
}

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
  const problems = new ProblemList("EndpointSlice", namespace, name);
  const slice = fieldsOf(raw);
  const serviceName = stringOf(metadata.labels[serviceLabel]) ?? "";
  const ignored = reasonToIgnore(metadata, slice) ?? (serviceName ? undefined : `has no label ${serviceLabel}`);
  if (ignored !== undefined) return { namespace, name, ignored, problems: problems.all };
  const serviceIsGood = checkName(`metadata.labels["${serviceLabel}"]`, serviceName, problems);
  const reading = { intern, refused: loopback ? ALL_BUT_LOOPBACK : REFUSED };
  const object = serviceIsGood ? readSlice(metadata, serviceName, slice, reading, problems) : undefined;
  const decoded = { namespace, name, problems: problems.all };
  return object === undefined ? decoded : { ...decoded, object };
}

function reasonToIgnore(metadata: Metadata, slice: RawObject): string | undefined {
  if (HEADLESS_LABEL in metadata.labels) return `label ${HEADLESS_LABEL}: a headless service has nothing to proxy`;
  return slice["addressType"] === "FQDN" ? "addressType FQDN cannot be proxied" : undefined;
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
  return triggerTime === undefined ? base : { ...base, triggerTime };
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
  // Both are allowed by the API and mean "all ports", which no proxy can do: left out without a word, as upstream does.
  if (isAbsent(name) || isAbsent(port) || port === 0) return undefined;
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

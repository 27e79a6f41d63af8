/**
 * Objects of a manifest file as the API server would store them: definitions of custom resources, defaults, versions.
 */

import { createHash } from "node:crypto";
import { familyOf, isObject, objectAt, objectsAt, type RawObject, slices, textAt, valueAt } from "@fairlead/base";
import type { ObjectKey, ResourceName } from "../change.ts";
import type { OnReport } from "../report.ts";
import { objectKeyOf, type ResourceSpec } from "../resources.ts";
import { parseManifest } from "./parse.ts";

/** An object of a manifest file as the API server would give it. */
export interface ManifestObject {
  readonly resource: ResourceName;
  readonly key: ObjectKey;
  readonly raw: RawObject;
}

/** Hash of the content: what a resourceVersion is for. */
export function versionOf({ raw }: ManifestObject): string {
  return createHash("sha1").update(JSON.stringify(raw)).digest("base64");
}

/**
 * The objects of a file that the server's selections would let through, with its defaults.
 *
 * @throws ManifestSyntaxError nothing of the file can be used then, what has been given included
 */
export async function* readManifest(
  file: string,
  content: Uint8Array,
  specs: readonly ResourceSpec[],
  onReport: OnReport,
): AsyncGenerator<ManifestObject> {
  const yielding = slices();
  const skipped = new Map<string, number>();
  for await (const raw of parseManifest(file, content)) {
    // Of Nodes the own one is wanted, and perhaps all.
    const wanted = specs.filter((spec) => isOf(raw, spec));
    if (wanted.length === 0 || !isObject(raw)) {
      const meant = meantBy(raw, specs);
      if (meant === undefined) count(skipped, kindText(raw));
      else onReport({ type: "badObject", resource: meant.name, file, error: versionText(raw, meant) });
    } else for (const spec of wanted) yield* objectOf(file, raw, spec, onReport);
    await yielding();
  }
  for (const [kind, times] of skipped) onReport({ type: "skippedKind", file, kind, count: times });
}

/** What a CustomResourceDefinition says of its resource's objects. */
export interface Definition {
  readonly group: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

/** Whether an operator wrote only the plural of the resource, which stands in place of the kind. */
export function hasNoKind({ other, kind }: ResourceSpec): boolean {
  return other !== undefined && kind === other.resource.plural;
}

const KIND = "CustomResourceDefinition";
const GROUP = "apiextensions.k8s.io/";

/**
 * The definitions of a file; a file without the word is not parsed for them.
 *
 * @throws ManifestSyntaxError
 */
export async function definitionsIn(file: string, content: Uint8Array): Promise<readonly Definition[]> {
  const found: Definition[] = [];
  if (!Buffer.from(content.buffer, content.byteOffset, content.byteLength).includes(KIND)) return found;
  for await (const raw of parseManifest(file, content)) {
    if (textAt(raw, "kind") !== KIND || textAt(raw, "apiVersion")?.startsWith(GROUP) !== true) continue;
    const spec = objectAt(raw, "spec");
    const names = objectAt(spec, "names");
    const [group, plural, kind] = [textAt(spec, "group"), textAt(names, "plural"), textAt(names, "kind")];
    if (group === undefined || plural === undefined || kind === undefined) continue;
    found.push({ group, plural, kind, namespaced: textAt(spec, "scope") === "Namespaced" });
  }
  return found;
}

/** The same resources, with the kind and scope that their definition gives them; the last definition counts. */
export function definedBy(definitions: readonly Definition[], specs: readonly ResourceSpec[]): readonly ResourceSpec[] {
  return specs.map((spec) => {
    const { other } = spec;
    if (other === undefined || !hasNoKind(spec)) return spec;
    const { group, plural } = other.resource;
    const known = definitions.findLast((one) => one.group === group && one.plural === plural);
    return known === undefined ? spec : { ...spec, kind: known.kind, namespaced: known.namespaced };
  });
}

/**
 * What the API server would have filled in before it stored the object, as far as a service proxy reads it: the
 * defaulting of core/v1 and discovery.k8s.io/v1 and what the Service registry derives (clusterIPs, ipFamilies).
 * Addresses and ports that the server would have allocated stay absent. The object is changed in place.
 */
export function setDefaults(kind: string, raw: RawObject): void {
  switch (kind) {
    case "Service":
      setNamespace(raw);
      setServiceDefaults(raw);
      break;
    case "EndpointSlice":
      setNamespace(raw);
      for (const port of objectsAt(raw, "ports")) setAbsent(port, { name: "", protocol: "TCP" });
      break;
    case "Node":
      setPair(objectIn(raw, "spec"), "podCIDR", "podCIDRs");
      break;
  }
}

/**
 * Whether objects of a kind are of a resource of which only the plural is known. A server's discovery would say, as
 * would the resource's definition; without them the kind is guessed as Kubernetes itself does
 * (UnsafeGuessKindToResource of k8s.io/apimachinery).
 */
export function isKindOf(kind: string, plural: string): boolean {
  const singular = kind.toLowerCase();
  return singular === plural || pluralOf(singular) === plural;
}

function isOf(raw: unknown, spec: ResourceSpec): boolean {
  const { apiVersion, kind } = spec;
  if (apiVersion !== textAt(raw, "apiVersion")) return false;
  const found = textAt(raw, "kind");
  return found === kind || (found !== undefined && hasNoKind(spec) && isKindOf(found, kind));
}

function objectOf(file: string, raw: RawObject, spec: ResourceSpec, onReport: OnReport): ManifestObject[] {
  setDefaults(spec.kind, raw);
  const key = objectKeyOf(raw);
  if (key === undefined) {
    onReport({ type: "badObject", resource: spec.name, file, error: `a ${spec.kind} without metadata.name` });
    return [];
  }
  if (!spec.selects(raw)) return [];
  const ownKey: ObjectKey = spec.namespaced ? key : `/${key.slice(key.indexOf("/") + 1)}`;
  return [{ resource: spec.name, key: ownKey, raw }];
}

/**
 * The resource that an object means without its apiVersion, or with one of another version; others have kinds of the
 * same name.
 */
function meantBy(raw: unknown, specs: readonly ResourceSpec[]): ResourceSpec | undefined {
  const version = textAt(raw, "apiVersion");
  return specs.find(
    ({ kind, apiVersion }) =>
      kind === textAt(raw, "kind") && (version === undefined || groupOf(version) === groupOf(apiVersion)),
  );
}

function groupOf(apiVersion: string): string {
  return apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";
}

function versionText(raw: unknown, { kind, apiVersion }: ResourceSpec): string {
  const version = textAt(raw, "apiVersion");
  const wrong = version === undefined ? "apiVersion is missing:" : `apiVersion ${JSON.stringify(version)}`;
  const name = textAt(valueAt(raw, "metadata"), "name");
  return `${[kind, ...(name === undefined ? [] : [name])].join(" ")}: ${wrong} must be ${apiVersion}`;
}

function count(counts: Map<string, number>, kind: string): void {
  counts.set(kind, (counts.get(kind) ?? 0) + 1);
}

function kindText(raw: unknown): string {
  const kind = textAt(raw, "kind");
  return kind === undefined ? "an object without kind" : `${textAt(raw, "apiVersion") ?? "(no apiVersion)"} ${kind}`;
}

function setNamespace(raw: RawObject): void {
  setAbsent(objectIn(raw, "metadata"), { namespace: "default" });
}

function setServiceDefaults(raw: RawObject): void {
  const spec = objectIn(raw, "spec");
  setAbsent(spec, { type: "ClusterIP", sessionAffinity: "None" });
  setClusterIPs(spec);
  setAffinity(spec);
  for (const port of objectsAt(spec, "ports")) setPortDefaults(port);
  setPolicies(spec);
  for (const ingress of objectsAt(objectAt(objectAt(raw, "status"), "loadBalancer"), "ingress")) {
    if (textAt(ingress, "ip") !== undefined) setAbsent(ingress, { ipMode: "VIP" });
  }
}

/** The two ways to write the address are made to agree; the families follow from the addresses. */
function setClusterIPs(spec: RawObject): void {
  setPair(spec, "clusterIP", "clusterIPs");
  const addresses = textsAt(spec, "clusterIPs").filter((address) => address !== "None");
  if (addresses.length === 0) return;
  setAbsent(spec, {
    ipFamilies: addresses.map((address) => familyOf(address)),
    ipFamilyPolicy: addresses.length > 1 ? "RequireDualStack" : "SingleStack",
  });
}

function setAffinity(spec: RawObject): void {
  if (textAt(spec, "sessionAffinity") !== "ClientIP") return;
  setAbsent(objectIn(objectIn(spec, "sessionAffinityConfig"), "clientIP"), { timeoutSeconds: 10_800 });
}

function setPortDefaults(port: RawObject): void {
  setAbsent(port, { protocol: "TCP" });
  if (valueAt(port, "targetPort") === 0) Object.assign(port, { targetPort: undefined });
  setAbsent(port, { targetPort: valueAt(port, "port") });
}

function setPolicies(spec: RawObject): void {
  const type = textAt(spec, "type");
  if (type === "ExternalName") return;
  setAbsent(spec, { internalTrafficPolicy: "Cluster" });
  const external = type === "NodePort" || type === "LoadBalancer" || textsAt(spec, "externalIPs").length > 0;
  if (external) setAbsent(spec, { externalTrafficPolicy: "Cluster" });
  if (type === "LoadBalancer") setAbsent(spec, { allocateLoadBalancerNodePorts: true });
}

/** A field and its newer plural, the first of which it is. */
function setPair(spec: RawObject, one: string, many: string): void {
  const first = textAt(spec, one) ?? textsAt(spec, many)[0];
  if (first !== undefined) setAbsent(spec, { [one]: first, [many]: [first] });
}

function setAbsent(into: RawObject, defaults: RawObject): void {
  for (const property in defaults) if (isAbsent(into[property])) into[property] = defaults[property];
}

/** Empty text and an empty list count as absent, as Go's zero values do for the server. */
function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || value === "" || (Array.isArray(value) && value.length === 0);
}

/**
 * The property's object, created if absent; a value that is not an object stays, and the caller gets a throw-away one.
 */
function objectIn(raw: RawObject, property: string): RawObject {
  const value = raw[property];
  if (isObject(value)) return value;
  const made: RawObject = {};
  if (isAbsent(value)) raw[property] = made;
  return made;
}

function textsAt(raw: RawObject, property: string): readonly string[] {
  const value = raw[property];
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === "string" && item !== "") : [];
}

function pluralOf(singular: string): string {
  if (/(?:s|x|z|ch|sh)$/.test(singular)) return `${singular}es`;
  return singular.endsWith("y") ? `${singular.slice(0, -1)}ies` : `${singular}s`;
}

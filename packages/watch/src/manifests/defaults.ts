import { familyOf, isObject, objectAt, objectsAt, type RawObject, textAt, valueAt } from "@fairlead/base";

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

/** The property's object, made if it isn't there; what isn't an object is left alone and a throw-away one given. */
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

import { fieldsOf, itemsOf, objectAt, stringOf, valueAt } from "@fairlead/base";
import type { OtherResource } from "@fairlead/watch";

export interface Resource {
  /** `v1`, `apps/v1` */
  readonly apiVersion: string;
  /** `daemonsets` */
  readonly plural: string;
  /** Absent: all namespaces, or the resource is not namespaced. */
  readonly namespace?: string;
}

export interface Selection {
  /** `name=value`, several with commas between. */
  readonly labels?: string;
  readonly fields?: string;
}

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly [field: string]: unknown };
  readonly [field: string]: unknown;
}

/** @param name absent: the path of the collection */
export function pathOf({ apiVersion, plural, namespace }: Resource, name?: string): string {
  const group = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const within = namespace === undefined ? "" : `/namespaces/${encodeURIComponent(namespace)}`;
  const one = name === undefined ? "" : `/${encodeURIComponent(name)}`;
  return `${group}${within}/${plural}${one}`;
}

/** Where an object belongs. The plural of each kind that is written has an s. */
export function resourceOf({ apiVersion, kind, metadata: { namespace } }: Manifest): Resource {
  return { apiVersion, plural: `${kind.toLowerCase()}s`, ...(namespace !== undefined && { namespace }) };
}

/** Where kubeadm has kube-proxy, and deploy/ has Fairlead. */
export const SYSTEM_NAMESPACE = "kube-system";

export const NAMESPACES: Resource = { apiVersion: "v1", plural: "namespaces" };
export const NODES: Resource = { apiVersion: "v1", plural: "nodes" };
export const PODS: Resource = { apiVersion: "v1", plural: "pods" };
export const DAEMON_SETS: Resource = { apiVersion: "apps/v1", plural: "daemonsets" };
export const CONFIG_MAPS: Resource = { apiVersion: "v1", plural: "configmaps" };
export const SERVICES: Resource = { apiVersion: "v1", plural: "services" };

/** A resource as a source of objects follows it. */
export function otherResource(apiVersion: string, plural: string, kind: string, namespaced = false): OtherResource {
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  return { group, version, plural, kind, namespaced };
}

export function inNamespace(resource: Resource, namespace: string): Resource {
  return { ...resource, namespace };
}

/** "": the object has no name. */
export function nameOf(object: unknown): string {
  return stringOf(valueAt(object, "metadata", "name")) ?? "";
}

/** Whether a Node or a pod is ready. */
export function isReady(object: unknown): boolean {
  const conditions = itemsOf(valueAt(object, "status", "conditions")).map(fieldsOf);
  return conditions.some(({ type, status }) => type === "Ready" && status === "True");
}

/** Why a pod is not ready, as the kubelet says it of a container: `ErrImagePull: …`; else its phase. */
export function whyNotReady(pod: unknown): string {
  const { phase, containerStatuses } = objectAt(pod, "status");
  const waiting = itemsOf(containerStatuses).map((one) => fieldsOf(valueAt(one, "state", "waiting")));
  const first = waiting.find(({ reason }) => stringOf(reason) !== undefined);
  if (first === undefined) return `it is ${stringOf(phase) ?? "not there"}`;
  return [first["reason"], first["message"]].filter((part) => typeof part === "string").join(": ");
}

import { fieldsOf, itemsOf, type RawObject, stringOf } from "@fairlead/base";
import {
  type InstalledFairlead,
  type MigrationState,
  type NodeState,
  type PodState,
  PROBLEM_ANNOTATION,
  PROVEN_ANNOTATION,
  PROXY_LABEL,
  type ProxyName,
  provenText,
} from "../plan/state.ts";
import { FAIRLEAD, MANAGED_BY_LABEL, MANAGER, MANIFESTS_ANNOTATION, OPTIONS_ANNOTATION } from "./names.ts";
import { placementOf } from "./placement.ts";
import { podSpecOf } from "./pod-spec.ts";

/** Objects of the API server, as they came. */
export interface ClusterObjects {
  readonly kubeProxy: unknown;
  /** Undefined: there is none. */
  readonly fairlead: unknown;
  readonly nodes: readonly unknown[];
  /** Those of both DaemonSets; others do no harm. */
  readonly pods: readonly unknown[];
}

/** What would be installed. */
export interface WantedFairlead {
  /** Its fingerprint. */
  readonly manifests: string;
  /** In place of kube-proxy's mode. */
  readonly mode: string | undefined;
}

/**
 * What a migration looks at, of the objects that there are.
 *
 * @param wanted undefined: whatever is there will do
 */
export function migrationState(objects: ClusterObjects, wanted?: WantedFairlead): MigrationState {
  const { kubeProxy, fairlead } = objects;
  const pods = podsByNode(objects);
  const selector = fieldsOf(podSpecOf(kubeProxy)["nodeSelector"]);
  const mode = rememberedMode(fairlead);
  const nodes = objects.nodes.filter((node) => isServed(node, selector)).sort(workersFirst);
  return {
    kubeProxy: { placement: placementOf("kube-proxy", kubeProxy) },
    ...(fairlead === undefined ? {} : { fairlead: installed(fairlead, wanted) }),
    nodes: nodes.map((node) => nodeState(node, pods.get(nameOf(node)) ?? {}, mode)),
  };
}

/** Whether a migration has made Fairlead's DaemonSet. */
export function isManaged(daemonSet: unknown): boolean {
  return labelOf(daemonSet, MANAGED_BY_LABEL) === MANAGER;
}

/** The options of the run that installed Fairlead, as far as they can be read. */
export function rememberedOptions(daemonSet: unknown): RawObject {
  try {
    return fieldsOf(JSON.parse(annotationOf(daemonSet, OPTIONS_ANNOTATION) ?? "{}"));
  } catch {
    return {};
  }
}

/** The mode that an earlier run was asked for, in place of kube-proxy's. */
function rememberedMode(daemonSet: unknown): string | undefined {
  return stringOf(rememberedOptions(daemonSet)["mode"]);
}

function installed(daemonSet: unknown, wanted: WantedFairlead | undefined): InstalledFairlead {
  const placement = placementOf("fairlead", daemonSet);
  const isCurrent = wanted === undefined || annotationOf(daemonSet, MANIFESTS_ANNOTATION) === wanted.manifests;
  const isOther = wanted !== undefined && rememberedMode(daemonSet) !== wanted.mode;
  // Somebody's change of it: written anew, it is where no unchanged node has it.
  if (placement === "everywhere") return { placement: "labeled", current: false };
  return { placement, current: isCurrent, ...(isOther && { otherMode: true }) };
}

function nodeState(node: unknown, pods: NodeState["pods"], mode: string | undefined): NodeState {
  const conditions = itemsOf(fieldsOf(fieldsOf(node)["status"])["conditions"]).map(fieldsOf);
  return {
    name: nameOf(node),
    ready: conditions.some(({ type, status }) => type === "Ready" && status === "True"),
    label: proxyNamed(labelOf(node, PROXY_LABEL)),
    proven: PROXIES.find((proxy) => annotationOf(node, PROVEN_ANNOTATION) === provenText(proxy, mode)),
    problem: annotationOf(node, PROBLEM_ANNOTATION),
    pods,
  };
}

const PROXIES: readonly ProxyName[] = ["kube-proxy", FAIRLEAD];

function proxyNamed(text: string | undefined): ProxyName | undefined {
  return PROXIES.find((proxy) => proxy === text);
}

/** A DaemonSet of Linux has pods there. */
function isServed(node: unknown, selector: RawObject): boolean {
  const wanted = { "kubernetes.io/os": "linux", ...selector };
  return Object.entries(wanted).every(([key, value]) => labelOf(node, key) === value);
}

const CONTROL_PLANE = "node-role.kubernetes.io/control-plane";

/** What goes wrong goes wrong on a worker. */
function workersFirst(one: unknown, other: unknown): number {
  const [a, b] = [one, other].map((node) => (labelOf(node, CONTROL_PLANE) === undefined ? "0" : "1") + nameOf(node));
  return a === b ? 0 : (a ?? "") < (b ?? "") ? -1 : 1;
}

function podsByNode({ kubeProxy, fairlead, pods }: ClusterObjects): ReadonlyMap<string, NodeState["pods"]> {
  const found = new Map<string, Partial<Record<ProxyName, PodState>>>();
  const owners = new Map<string, readonly [ProxyName, unknown]>();
  for (const [proxy, daemonSet] of [["kube-proxy", kubeProxy] as const, [FAIRLEAD, fairlead] as const]) {
    const uid = stringOf(fieldsOf(fieldsOf(daemonSet)["metadata"])["uid"]);
    if (uid !== undefined) owners.set(uid, [proxy, daemonSet]);
  }
  for (const pod of pods) {
    const references = itemsOf(fieldsOf(fieldsOf(pod)["metadata"])["ownerReferences"]).map(fieldsOf);
    const [proxy, daemonSet] = references.map(({ uid }) => owners.get(stringOf(uid) ?? "")).find(Boolean) ?? [];
    const node = stringOf(fieldsOf(fieldsOf(pod)["spec"])["nodeName"]);
    if (proxy === undefined || node === undefined) continue;
    const others = found.get(node) ?? {};
    // While one ends and the next one starts, the older is what is there.
    found.set(node, { ...others, [proxy]: others[proxy]?.ready === false ? others[proxy] : podState(pod, daemonSet) });
  }
  return found;
}

function podState(pod: unknown, daemonSet: unknown): PodState {
  const metadata = fieldsOf(fieldsOf(pod)["metadata"]);
  const status = fieldsOf(fieldsOf(pod)["status"]);
  const conditions = itemsOf(status["conditions"]).map(fieldsOf);
  const containers = [...itemsOf(status["initContainerStatuses"]), ...itemsOf(status["containerStatuses"])].map(
    fieldsOf,
  );
  const isReady = conditions.some((one) => one["type"] === "Ready" && one["status"] === "True");
  return {
    ready: isReady && metadata["deletionTimestamp"] === undefined,
    current: isCurrent(pod, daemonSet),
    restarts: containers.reduce((sum, { restartCount }) => sum + (Number(restartCount) || 0), 0),
  };
}

/** The controller counts templates in an annotation of the DaemonSet and a label of its pods. */
function isCurrent(pod: unknown, daemonSet: unknown): boolean {
  const { generation, observed } = generations(daemonSet);
  if (generation !== observed) return false;
  if (fieldsOf(fieldsOf(fieldsOf(daemonSet)["spec"])["updateStrategy"])["type"] === "OnDelete") return true;
  const template = annotationOf(daemonSet, "deprecated.daemonset.template.generation");
  const made = labelOf(pod, "pod-template-generation");
  return template === undefined || made === undefined || template === made;
}

function generations(daemonSet: unknown): { readonly generation: unknown; readonly observed: unknown } {
  const { metadata, status } = fieldsOf(daemonSet);
  return { generation: fieldsOf(metadata)["generation"], observed: fieldsOf(status)["observedGeneration"] };
}

function nameOf(object: unknown): string {
  return stringOf(fieldsOf(fieldsOf(object)["metadata"])["name"]) ?? "";
}

function labelOf(object: unknown, key: string): string | undefined {
  return stringOf(fieldsOf(fieldsOf(fieldsOf(object)["metadata"])["labels"])[key]);
}

function annotationOf(object: unknown, key: string): string | undefined {
  return stringOf(fieldsOf(fieldsOf(fieldsOf(object)["metadata"])["annotations"])[key]);
}

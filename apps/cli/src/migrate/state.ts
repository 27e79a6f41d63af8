/**
 * What a migration looks at: DaemonSets, Nodes and pods as JSON, what they say about it, and where DaemonSets place
 * their pods.
 */

import { fieldsOf, itemsOf, objectAt, type RawObject, stringOf, valueAt } from "@fairlead/base";
import { isReady, nameOf } from "../cluster/resources.ts";

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
interface WantedFairlead {
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

/** The two that can serve a node. */
export type ProxyName = "kube-proxy" | "fairlead";

/** Names the proxy that serves a node: `kube-proxy` or `fairlead`; absent: the proxy of nodes without the label. */
export const PROXY_LABEL = "fairlead.dev/proxy";

/** Annotation of a Node: the proxy that was seen to serve it well after the change to it; `provenText`. */
export const PROVEN_ANNOTATION = "fairlead.dev/proxy-proven";

/** Annotation of a Node: why it was put back. */
export const PROBLEM_ANNOTATION = "fairlead.dev/migration-problem";

/**
 * Which nodes a DaemonSet has pods on: all, as before any migration; those whose label does not name the other proxy;
 * only those whose label names it.
 */
export type Placement = "everywhere" | "unless-other" | "labeled";

interface PodState {
  readonly ready: boolean;
  /** It was made of the DaemonSet's template of now. */
  readonly current: boolean;
  /** Of all its containers. */
  readonly restarts: number;
}

export interface NodeState {
  readonly name: string;
  /** The Node's own condition: what happens on others cannot be seen. */
  readonly ready: boolean;
  readonly label: ProxyName | undefined;
  readonly proven: ProxyName | undefined;
  readonly problem: string | undefined;
  readonly pods: Readonly<Partial<Record<ProxyName, PodState>>>;
}

/** Fairlead's DaemonSet. */
interface InstalledFairlead {
  readonly placement: Exclude<Placement, "everywhere">;
  /** What is installed is what would be. */
  readonly current: boolean;
  /** It serves in another mode than what would be installed; absent: in the same one. */
  readonly otherMode?: true;
}

/** What of a cluster a migration looks at: all that it remembers is in here. */
export interface MigrationState {
  readonly kubeProxy: { readonly placement: Placement };
  /** Absent: not installed. */
  readonly fairlead?: InstalledFairlead;
  /** Those that a proxy of Linux serves, in the order in which they are changed. */
  readonly nodes: readonly NodeState[];
}

/** `fairlead`, `fairlead/nftables`: with the mode that it was given in the place of kube-proxy's. */
export function provenText(proxy: ProxyName, mode: string | undefined): string {
  return proxy === "fairlead" && mode !== undefined ? `${proxy}/${mode}` : proxy;
}

export function otherProxy(proxy: ProxyName): ProxyName {
  return proxy === "fairlead" ? "kube-proxy" : "fairlead";
}

export function assignedProxy(state: MigrationState, { label }: Pick<NodeState, "label">): ProxyName {
  return label ?? (state.kubeProxy.placement === "labeled" ? "fairlead" : "kube-proxy");
}

/** Whether a DaemonSet that is placed so has a pod on a node. */
export function isPlacedOn(proxy: ProxyName, placement: Placement, { label }: Pick<NodeState, "label">): boolean {
  if (placement === "everywhere") return true;
  return placement === "labeled" ? label === proxy : label !== otherProxy(proxy);
}

/** Where Fairlead's objects are. */
export const NAMESPACE = "kube-system";

/** kube-proxy's DaemonSet, as kubeadm, kind and kubespray have it. */
export const KUBE_PROXY_DAEMON_SET = "kube-system/kube-proxy";

/** Of all of Fairlead's objects. */
export const FAIRLEAD = "fairlead";

export const NAME_LABEL = "app.kubernetes.io/name";
export const MANAGED_BY_LABEL = "app.kubernetes.io/managed-by";
export const MANAGER = "fairlead-migrate";

/** Annotation of Fairlead's DaemonSet: what of its objects it was made with. */
export const MANIFESTS_ANNOTATION = "fairlead.dev/manifests";

/** Annotation of the Lease: the process that holds it, as JSON, for others on the same machine. */
export const PROCESS_ANNOTATION = "fairlead.dev/process";

/** Annotation of Fairlead's DaemonSet: the options of the run that made it, as JSON. */
export const OPTIONS_ANNOTATION = "fairlead.dev/migrate-options";

/** What a DaemonSet, straight from JSON, makes its pods of. */
export function podSpecOf(daemonSet: unknown): RawObject {
  return fieldsOf(valueAt(daemonSet, "spec", "template", "spec"));
}

/** Where a DaemonSet places its pods, as far as a migration has a say in it. */
export function placementOf(proxy: ProxyName, daemonSet: unknown): Placement {
  const terms = termsOf(daemonSet);
  if (terms.length === 0) return "everywhere";
  const own = terms.map((term) => itemsOf(term["matchExpressions"]).map(fieldsOf).filter(isOwn));
  for (const placement of ["unless-other", "labeled"] as const) {
    const wanted = JSON.stringify(requirementOf(proxy, placement));
    if (own.every(([only, ...more]) => more.length === 0 && only !== undefined && isSame(only, wanted)))
      return placement;
  }
  return "everywhere";
}

/**
 * What `kubectl patch --type=merge` takes, so that a DaemonSet places its pods so. All else that it asks of nodes
 * stays. Terms are alternatives: each of them gets the requirement.
 */
export function placementPatch(proxy: ProxyName, daemonSet: unknown, placement: Placement): object {
  const requiredDuringSchedulingIgnoredDuringExecution =
    placement === "everywhere" ? without(daemonSet) : { nodeSelectorTerms: placedTerms(proxy, daemonSet, placement) };
  const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution } };
  return { spec: { template: { spec: { affinity } } } };
}

export function placedTerms(proxy: ProxyName, daemonSet: unknown, placement: Placement): readonly object[] {
  const requirement = requirementOf(proxy, placement);
  const terms = bareTerms(daemonSet);
  if (requirement === undefined) return terms;
  return (terms.length === 0 ? [{}] : terms).map((term: RawObject) => ({
    ...term,
    matchExpressions: [...itemsOf(term["matchExpressions"]), requirement],
  }));
}

/** The mode that an earlier run was asked for, in place of kube-proxy's. */
function rememberedMode(daemonSet: unknown): string | undefined {
  return stringOf(rememberedOptions(daemonSet)["mode"]);
}

function installed(daemonSet: unknown, wanted: WantedFairlead | undefined): InstalledFairlead {
  const placement = placementOf("fairlead", daemonSet);
  const isCurrent = wanted === undefined || annotationOf(daemonSet, MANIFESTS_ANNOTATION) === wanted.manifests;
  const isOther = wanted !== undefined && rememberedMode(daemonSet) !== wanted.mode;
  // Another writer changed it: written anew, it is where no unchanged node has it.
  if (placement === "everywhere") return { placement: "labeled", current: false };
  return { placement, current: isCurrent, ...(isOther && { otherMode: true }) };
}

function nodeState(node: unknown, pods: NodeState["pods"], mode: string | undefined): NodeState {
  return {
    name: nameOf(node),
    ready: isReady(node),
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
    const uid = stringOf(valueAt(daemonSet, "metadata", "uid"));
    if (uid !== undefined) owners.set(uid, [proxy, daemonSet]);
  }
  for (const pod of pods) {
    const references = itemsOf(valueAt(pod, "metadata", "ownerReferences")).map(fieldsOf);
    const [proxy, daemonSet] = references.map(({ uid }) => owners.get(stringOf(uid) ?? "")).find(Boolean) ?? [];
    const node = stringOf(valueAt(pod, "spec", "nodeName"));
    if (proxy === undefined || node === undefined) continue;
    const others = found.get(node) ?? {};
    // While one ends and the next one starts, the older is what is there.
    found.set(node, { ...others, [proxy]: others[proxy]?.ready === false ? others[proxy] : podState(pod, daemonSet) });
  }
  return found;
}

function podState(pod: unknown, daemonSet: unknown): PodState {
  const metadata = objectAt(pod, "metadata");
  const status = objectAt(pod, "status");
  const containers = [...itemsOf(status["initContainerStatuses"]), ...itemsOf(status["containerStatuses"])].map(
    fieldsOf,
  );
  return {
    ready: isReady(pod) && metadata["deletionTimestamp"] === undefined,
    current: isCurrent(pod, daemonSet),
    restarts: containers.reduce((sum, { restartCount }) => sum + (Number(restartCount) || 0), 0),
  };
}

/** The controller counts templates in an annotation of the DaemonSet and a label of its pods. */
function isCurrent(pod: unknown, daemonSet: unknown): boolean {
  const { generation, observed } = generations(daemonSet);
  if (generation !== observed) return false;
  if (valueAt(daemonSet, "spec", "updateStrategy", "type") === "OnDelete") return true;
  const template = annotationOf(daemonSet, "deprecated.daemonset.template.generation");
  const made = labelOf(pod, "pod-template-generation");
  return template === undefined || made === undefined || template === made;
}

function generations(daemonSet: unknown): { readonly generation: unknown; readonly observed: unknown } {
  const { metadata, status } = fieldsOf(daemonSet);
  return { generation: fieldsOf(metadata)["generation"], observed: fieldsOf(status)["observedGeneration"] };
}

function labelOf(object: unknown, key: string): string | undefined {
  return stringOf(valueAt(object, "metadata", "labels", key));
}

function annotationOf(object: unknown, key: string): string | undefined {
  return stringOf(valueAt(object, "metadata", "annotations", key));
}

/** On which nodes a proxy's DaemonSet places its pods, and the patch that changes it. */

interface Requirement {
  readonly key: string;
  readonly operator: "In" | "NotIn";
  readonly values: readonly ProxyName[];
}

/** The requirement of a placement; undefined for every node. */
function requirementOf(proxy: ProxyName, placement: Placement): Requirement | undefined {
  if (placement === "everywhere") return undefined;
  const [operator, value] =
    placement === "labeled" ? (["In", proxy] as const) : (["NotIn", otherProxy(proxy)] as const);
  return { key: PROXY_LABEL, operator, values: [value] };
}

function without(daemonSet: unknown): object | null {
  const terms = bareTerms(daemonSet);
  return terms.length === 0 ? null : { nodeSelectorTerms: terms };
}

/** The terms without what a migration added; one that had nothing else was added as a whole. */
function bareTerms(daemonSet: unknown): readonly RawObject[] {
  return termsOf(daemonSet).flatMap((term) => {
    const expressions = itemsOf(term["matchExpressions"]);
    const kept = expressions.filter((one) => !isOwn(fieldsOf(one)));
    if (kept.length === expressions.length) return [term];
    const { matchExpressions: _, ...rest } = term;
    if (kept.length > 0) return [{ ...rest, matchExpressions: kept }];
    return Object.keys(rest).length === 0 ? [] : [rest];
  });
}

function termsOf(daemonSet: unknown): readonly RawObject[] {
  const affinity = objectAt(podSpecOf(daemonSet)["affinity"], "nodeAffinity");
  const required = fieldsOf(affinity["requiredDuringSchedulingIgnoredDuringExecution"]);
  return itemsOf(required["nodeSelectorTerms"]).map(fieldsOf);
}

function isOwn({ key }: RawObject): boolean {
  return key === PROXY_LABEL;
}

function isSame({ key, operator, values }: RawObject, wanted: string): boolean {
  return JSON.stringify({ key, operator, values }) === wanted;
}

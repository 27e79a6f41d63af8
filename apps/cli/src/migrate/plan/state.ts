/** The two that can serve a node. */
export type ProxyName = "kube-proxy" | "fairlead";

/** Says who serves a node: `kube-proxy` or `fairlead`; absent: whoever serves nodes without the label. */
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

export interface PodState {
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
export interface InstalledFairlead {
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

/** Who is to serve a node. */
export function assignedProxy(state: MigrationState, { label }: Pick<NodeState, "label">): ProxyName {
  return label ?? (state.kubeProxy.placement === "labeled" ? "fairlead" : "kube-proxy");
}

/** Whether a DaemonSet that is placed so has a pod on a node. */
export function isPlacedOn(proxy: ProxyName, placement: Placement, { label }: Pick<NodeState, "label">): boolean {
  if (placement === "everywhere") return true;
  return placement === "labeled" ? label === proxy : label !== otherProxy(proxy);
}

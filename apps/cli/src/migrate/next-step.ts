/** What is to be done next; pure. */

import {
  assignedProxy,
  type MigrationState,
  type NodeState,
  otherProxy,
  type Placement,
  type ProxyName,
} from "./state.ts";

/** What this run knows in addition to the cluster. A run that begins anew knows nothing and loses nothing. */
export interface Session {
  readonly checked: ReadonlySet<string>;
  /** What went wrong; nothing is changed after it but that node, which goes back. */
  readonly failure?: { readonly node: string; readonly reason: string };
  /** What is waited for has not come in time. */
  readonly overdue: boolean;
  /** This run has installed Fairlead in kube-proxy's mode on the way back: nodes change proxies when they are in it. */
  readonly bridged?: boolean;
  /** This run has removed Fairlead's objects: one that was killed may have left some without the DaemonSet. */
  readonly uninstalled: boolean;
}

export type Step =
  /** Writes Fairlead's objects. */
  | { readonly do: "install"; readonly placement: Exclude<Placement, "everywhere"> }
  | { readonly do: "place"; readonly proxy: ProxyName; readonly placement: Placement }
  | { readonly do: "wait"; readonly for: readonly string[] }
  /** Verifies a node before it is changed. */
  | { readonly do: "check"; readonly node: string }
  | { readonly do: "switch"; readonly node: string; readonly to: ProxyName }
  /** Verifies a node after its change, sees that it stays well, and marks it. */
  | { readonly do: "prove"; readonly node: string; readonly proxy: ProxyName }
  | { readonly do: "put-back"; readonly node: string; readonly to: ProxyName; readonly reason: string }
  /** Removes labels and marks from nodes, then Fairlead's objects. */
  | { readonly do: "unmark" }
  | { readonly do: "uninstall" }
  | { readonly do: "stop"; readonly reason: string }
  | { readonly do: "done" };

/**
 * The next step on the way to `goal` serving every node. All state is in the cluster: a run that ends at any moment
 * continues from there. One node changes at a time, and no node is ever without a proxy.
 */
export function nextStep(state: MigrationState, goal: ProxyName, session: Session): Step {
  if (session.failure !== undefined) return afterFailure(state, session.failure, goal, session.overdue);
  return (
    beginning(state, goal) ??
    waiting(state, goal, session) ??
    change(state, goal, session) ??
    ending(state, goal, session)
  );
}

function afterFailure(
  state: MigrationState,
  { node: name, reason }: NonNullable<Session["failure"]>,
  goal: ProxyName,
  overdue: boolean,
): Step {
  const origin = otherProxy(goal);
  const node = state.nodes.find((one) => one.name === name);
  if (node === undefined) return { do: "stop", reason };
  if (assignedProxy(state, node) === goal) return { do: "put-back", node: name, to: origin, reason };
  const left = node.ready ? unsettled(state, node) : undefined;
  if (left === undefined) return { do: "stop", reason: `${reason}; ${origin} serves it` };
  return overdue ? { do: "stop", reason: `${reason}; put back, but ${left}` } : { do: "wait", for: [left] };
}

/** Nodes without a label are kube-proxy's until all others have changed, and again from the first step back. */
function beginning(state: MigrationState, goal: ProxyName): Step | undefined {
  const { kubeProxy, fairlead } = state;
  if (goal === "kube-proxy" && fairlead === undefined) return undefined;
  const changed = goal === "fairlead" && isChanged(state, goal);
  if (kubeProxy.placement === "everywhere" || (kubeProxy.placement === "labeled" && !changed)) {
    return { do: "place", proxy: "kube-proxy", placement: "unless-other" };
  }
  if (fairlead?.placement === "unless-other" && !changed) {
    return { do: "place", proxy: "fairlead", placement: "labeled" };
  }
  if (goal === "kube-proxy") return bridge(state);
  if (fairlead?.current === true) return undefined;
  return { do: "install", placement: fairlead?.placement ?? "labeled" };
}

/**
 * kube-proxy removes another mode's rules before it has its own, Fairlead after it has them: so Fairlead goes back to
 * kube-proxy's mode first.
 */
function bridge(state: MigrationState): Step | undefined {
  const { fairlead } = state;
  if (fairlead?.otherMode !== true) return undefined;
  const isServing = state.nodes.some((node) => assignedProxy(state, node) === "fairlead");
  return isServing ? { do: "install", placement: fairlead.placement } : undefined;
}

function waiting(state: MigrationState, goal: ProxyName, { overdue }: Session): Step | undefined {
  const looked = state.nodes.filter((node) => node.ready && counts(state, node, goal));
  const open = looked.flatMap((node) => {
    const text = unsettled(state, node);
    return text === undefined ? [] : [{ node, text }];
  });
  const [first] = open;
  if (first === undefined) return undefined;
  if (!overdue) return { do: "wait", for: open.map(({ text }) => text) };
  const failed = open.find(({ node }) => isTrial(node, goal)) ?? open.find(({ node }) => node.label === goal);
  const reason = open.map(({ text }) => text).join("; ");
  if (failed === undefined) return { do: "stop", reason };
  return { do: "put-back", node: failed.node.name, to: otherProxy(goal), reason };
}

/** On the way back what Fairlead does on nodes that it still has does not count: it may be the reason. */
function counts(state: MigrationState, node: NodeState, goal: ProxyName): boolean {
  return goal === "fairlead" || assignedProxy(state, node) === goal;
}

function change(state: MigrationState, goal: ProxyName, session: Session): Step | undefined {
  const { checked, bridged = false, overdue } = session;
  const trial = state.nodes.find((node) => node.ready && isTrial(node, goal));
  if (trial !== undefined) return { do: "prove", node: trial.name, proxy: goal };
  const rest = state.nodes.filter((node) => assignedProxy(state, node) !== goal);
  const next = rest.find(({ ready }) => ready);
  if (next === undefined) {
    const unchanged = [...rest, ...state.nodes.filter((node) => isTrial(node, goal))].map(({ name }) => name);
    if (unchanged.length === 0) return undefined;
    return { do: "stop", reason: `not Ready and not changed to ${goal}: ${unchanged.join(", ")}` };
  }
  if (goal === "fairlead" && !checked.has(next.name)) return { do: "check", node: next.name };
  // Where Fairlead does not come to serve in that mode it may be the reason to go back.
  const left = bridged && !overdue ? unsettled(state, next) : undefined;
  if (left !== undefined) return { do: "wait", for: [left] };
  return { do: "switch", node: next.name, to: goal };
}

/** Changed, and not yet seen to be well. */
function isTrial({ label, proven }: NodeState, goal: ProxyName): boolean {
  return label === goal && proven !== goal;
}

/** Nodes to come get what all others have by now. */
function ending(state: MigrationState, goal: ProxyName, { uninstalled }: Session): Step {
  const { kubeProxy, fairlead } = state;
  if (goal === "fairlead") {
    if (fairlead?.placement !== "unless-other") return { do: "place", proxy: goal, placement: "unless-other" };
    if (kubeProxy.placement !== "labeled") return { do: "place", proxy: "kube-proxy", placement: "labeled" };
    return { do: "done" };
  }
  if (fairlead !== undefined || !uninstalled) return { do: "uninstall" };
  if (kubeProxy.placement !== "everywhere") return { do: "place", proxy: goal, placement: "everywhere" };
  const marked = state.nodes.some(({ label, proven, problem }) => (label ?? proven ?? problem) !== undefined);
  return marked ? { do: "unmark" } : { do: "done" };
}

/** Every node, those to come included. */
function isChanged(state: MigrationState, goal: ProxyName): boolean {
  return (
    state.fairlead?.placement === "unless-other" && state.nodes.every((node) => assignedProxy(state, node) === goal)
  );
}

/** What is missing until a node has the one proxy that it is to have; undefined: nothing. */
function unsettled(state: MigrationState, node: NodeState): string | undefined {
  const proxy = assignedProxy(state, node);
  const pod = node.pods[proxy];
  if (pod === undefined) return `${node.name}: no pod of ${proxy} yet`;
  if (!pod.current) return `${node.name}: the pod of ${proxy} has an outdated template`;
  if (!pod.ready) return `${node.name}: ${proxy} is not ready`;
  const other = otherProxy(proxy);
  return node.pods[other] === undefined ? undefined : `${node.name}: the pod of ${other} is still terminating`;
}

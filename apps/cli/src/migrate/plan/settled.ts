import { assignedProxy, type MigrationState, type NodeState, otherProxy } from "./state.ts";

/** What is missing until a node has the one proxy that it is to have; undefined: nothing. */
export function unsettled(state: MigrationState, node: NodeState): string | undefined {
  const proxy = assignedProxy(state, node);
  const pod = node.pods[proxy];
  if (pod === undefined) return `${node.name}: no pod of ${proxy} yet`;
  if (!pod.current) return `${node.name}: the pod of ${proxy} has an outdated template`;
  if (!pod.ready) return `${node.name}: ${proxy} is not ready`;
  const other = otherProxy(proxy);
  return node.pods[other] === undefined ? undefined : `${node.name}: the pod of ${other} is still terminating`;
}

/** What an operator should find with `kubectl describe node`. */
export interface NodeEvent {
  readonly type: "Normal" | "Warning";
  /** One word, as machines compare it: `SyncFailed`. */
  readonly reason: string;
  readonly message: string;
  /** What was done, one word as well; absent where nothing was. */
  readonly action?: string;
}

/** Bytes of a message that the API server takes. */
const longestMessage = 1_024;

/**
 * A core/v1 Event about the own Node, from the component that it has with kube-proxy, so that what looks for those finds it.
 *
 * @param id makes the name unique
 */
export function eventObject(
  { type, reason, message, action }: NodeEvent,
  node: string,
  at: number,
  id: string,
): unknown {
  const time = `${new Date(at).toISOString().slice(0, 19)}Z`;
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: { name: `${node}.${id}`, namespace: "default" },
    involvedObject: { kind: "Node", name: node, uid: node },
    type,
    reason,
    message: message.slice(0, longestMessage),
    ...(action === undefined ? {} : { action }),
    source: { component: "kube-proxy", host: node },
    reportingComponent: "kube-proxy",
    reportingInstance: node,
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  };
}

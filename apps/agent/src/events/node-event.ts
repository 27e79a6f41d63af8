/** A Service, as an Event names it. */
interface ServiceReference {
  readonly namespace: string;
  readonly name: string;
  /** metadata.uid, by which `kubectl describe` finds an Event; absent: not known. */
  readonly uid?: string;
}

/** What an operator should find with `kubectl describe` of the own Node, or of a Service. */
export interface NodeEvent {
  readonly type: "Normal" | "Warning";
  /** One word, as machines compare it: `SyncFailed`. */
  readonly reason: string;
  readonly message: string;
  /** What was done, one word as well; absent where nothing was. */
  readonly action?: string;
  /** The Service that it is about; absent: the own Node. */
  readonly service?: ServiceReference;
}

/** Events live in the namespace of what they are about (the API server checks it); those about Nodes in `default`. */
export function namespaceOf({ service }: NodeEvent): string {
  return service?.namespace ?? "default";
}

/** Bytes of a message that the API server takes. */
const LONGEST_MESSAGE = 1_024;

/** The component of kube-proxy's Events, so that a search for those finds ours. */
export const KUBE_PROXY = "kube-proxy";

/** The component of Events: kube-proxy's, or that of a second proxy alongside it. */
export function componentOf(serviceProxyName: string): string {
  return serviceProxyName === "" ? KUBE_PROXY : `fairlead-${serviceProxyName}`;
}

/**
 * A core/v1 Event about the own Node or a Service.
 *
 * @param component that reports it
 * @param id makes the name unique
 */
export function eventObject(event: NodeEvent, node: string, component: string, at: number, id: string): unknown {
  const { type, reason, message, action, service } = event;
  const time = `${new Date(at).toISOString().slice(0, 19)}Z`;
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: { name: `${service?.name ?? node}.${id}`, namespace: namespaceOf(event) },
    involvedObject:
      service === undefined
        ? { kind: "Node", name: node, uid: node }
        : { apiVersion: "v1", kind: "Service", ...service },
    type,
    reason,
    message: message.slice(0, LONGEST_MESSAGE),
    ...(action === undefined ? {} : { action }),
    source: { component, host: node },
    reportingComponent: component,
    reportingInstance: node,
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  };
}

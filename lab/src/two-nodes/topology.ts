import { apiServer, type Host, hosts, NODE_A, outside, stranger } from "@fairlead/testkit";

/**
 * The test ground: two nodes on a bridge in `fabric`, pods of two networks behind them, clients outside, and `sink`,
 * the end of all routes: what no rule translates arrives there and is answered, so that "left alone" is seen and
 * nothing ever leaves the machine. Every one of these is a network namespace.
 */
export const FIXED_NAMESPACES = ["fabric", "sink", "outside", "node-a", "node-b"] as const;

export type FixedNamespace = (typeof FIXED_NAMESPACES)[number];

/** Pods, each in a namespace of its own. */
export const pods: readonly Host[] = hosts.filter(({ place }) => place === "pod");

/** In which namespace a host is. */
export function namespaceOf(host: Host): string {
  if (host === outside || host === stranger) return "outside";
  return host === apiServer ? "sink" : host.name;
}

export function podsOf(node: Host): readonly Host[] {
  return pods.filter((pod) => pod.node === node.name);
}

/** The node's side of a pod's link. */
export function podInterface(pod: Host): string {
  return pod.node === NODE_A.name && pod.interface !== undefined ? pod.interface : `pod-${pod.name}`;
}

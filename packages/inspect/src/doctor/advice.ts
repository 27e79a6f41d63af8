/**
 * Each advice that a doctor may give, by name. Commands in its text are in backticks, each whole: a reader, and the
 * test that follows it on a node, takes it as it is.
 */
export const ADVICE_NAMES = [
  // Of what cannot be seen.
  "look-as-root",
  "look-in-host-processes",
  "install-ip",
  "ask-running-proxy",
  // Of the node.
  "install-iptables",
  "one-variant",
  "remove-other-variant",
  "decide-variant",
  "let-through",
  "make-table",
  "check-tables",
  "delete-left-tables",
  "start-proxy-first",
  "instance",
  "kernel-part",
  "fast-path-kernel",
  "fast-path-failed",
  "fast-path-test",
  "fast-path-devices",
  "fast-path-device",
  "fast-path-other",
  "sysctl",
  "rp-filter",
  "one-proxy",
  "start-agent",
  "pod-network",
  // Of options and the API server.
  "give-cidrs",
  "give-kubeconfig",
  "reach-api-server",
  "bind-role",
  "ask-as-agent",
  // Of other networks.
  "kube-ovn-mode",
  "kube-ovn-set",
  "calico-bpf",
  "calico-maps",
  "cilium-replaces",
  "cilium-look",
  "read-settings",
  "excluded-clients",
  "pods-bridge",
  "services-overlap",
  "nodes-overlap",
  "underlay",
  "one-side",
  "within-other",
  "two-sources",
  "answer-calls",
  "list-calls",
  "compare-decisions",
  "look-at-agents",
  "reach-agents",
  "kept-cidrs",
  "leave-isolated",
  "explain-services",
] as const;

export type AdviceName = (typeof ADVICE_NAMES)[number];

/** What to do about a finding. */
export interface Advice {
  readonly name: AdviceName;
  readonly text: string;
}

export const advice = (name: AdviceName, text: string): Advice => ({ name, text });

/** What gives the right to look. */
const AS_ROOT_TEXT = "run as root, with NET_ADMIN and in the host's network namespace";

/** @param more what else helps, after a semicolon */
export function asRoot(more?: string): Advice {
  return advice("look-as-root", more === undefined ? AS_ROOT_TEXT : `${AS_ROOT_TEXT}; ${more}`);
}

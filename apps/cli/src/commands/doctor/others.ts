import type { NodeFacts } from "@fairlead/inspect";
import type { Attempt } from "./command-result.ts";
import type { ListedRules } from "./rules.ts";

/** kube-ovn's own form of it, with whatever iptables writes behind. */
const REJECT = /^-A (?:INPUT|OUTPUT) .*! --mark 0x4000\/0x4000 .*--match-set ovn[46]0services dst .*-j REJECT\b.*$/gm;
/** A proxy in ipvs mode asks a set for the addresses of services; kube-ovn asks the same one, in a chain of its own. */
const BY_SETS = /^-A KUBE-SERVICES .*--match-set KUBE-(?:6-)?CLUSTER-IP /m;
const CILIUM_CHAIN = /^:(CILIUM_\S+) /gm;

/** What other networks left in the rules of this host, of both variants and families. */
export function othersFacts(
  listed: readonly ListedRules[],
  maps: NodeFacts["others"]["pinnedMaps"],
): NodeFacts["others"] {
  const texts = listed.flatMap(({ text, ipv6 }) => [text ?? [], ipv6 ?? []].flat());
  // Without iptables there is nothing of it to read.
  const readable = listed.every(({ text }) => text !== undefined);
  const matches = (pattern: RegExp) => texts.flatMap((text) => [...text.matchAll(pattern)]);
  return {
    kubeOVNRejects: readable ? matches(REJECT).map(([rule]) => rule) : undefined,
    servesBySets: readable ? texts.some((text) => BY_SETS.test(text)) : undefined,
    ciliumChains: readable ? [...new Set(matches(CILIUM_CHAIN).map(([, chain = ""]) => chain))] : undefined,
    pinnedMaps: maps,
  };
}

/** Where the tools of iproute2, Calico and Cilium pin maps that all programs of a node share. */
const PINNED = "/sys/fs/bpf/tc/globals";

/**
 * Names of maps; undefined: they cannot be listed. From a pod the host's file system of BPF is not seen: that nothing
 * is there says nothing then.
 *
 * @param onHost whether the host's own processes, and so its file systems, are seen
 */
export async function pinnedMaps(attempt: Attempt, onHost: boolean): Promise<readonly string[] | undefined> {
  const seen = await attempt("ls", PINNED);
  if (seen.kind === "seen") return seen.text.split("\n").filter((name) => name !== "");
  return seen.kind === "absent" && onHost ? [] : undefined;
}

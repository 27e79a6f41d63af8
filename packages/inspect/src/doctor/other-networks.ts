import { type Advice, advice, asRoot } from "./advice.ts";
import { bad, good, unknown, warning } from "./diagnosis.ts";
import type { Diagnosis, NodeFacts, ObjectReading } from "./facts.ts";

/** Networks that serve services themselves, or take the proxy's rules away. */
export function otherNetworks(facts: NodeFacts): readonly Diagnosis[] {
  return [kubeOVN(facts), calico(facts), cilium(facts)];
}

/**
 * kube-ovn (pkg/daemon/gateway_linux.go) puts these rules first into filter's INPUT and OUTPUT as soon as the ipset
 * KUBE-CLUSTER-IP exists. In ipvs mode packets to services go through INPUT as they are; elsewhere their destination
 * was changed before.
 */
function kubeOVN({ others: { kubeOVNRejects: rules, servesBySets } }: NodeFacts): Diagnosis {
  const check = "kube-ovn's REJECT of services";
  if (rules === undefined || servesBySets === undefined) return unknown(check, "rules may not be read", asRoot());
  if (rules.length === 0) return good(check, "none");
  const found = rules.join("; ");
  if (servesBySets) {
    return bad(
      check,
      found,
      advice(
        "kube-ovn-mode",
        "use iptables or nftables mode, or set iptables.masqueradeAll (--masquerade-all): in ipvs mode these rules reject TCP to each " +
          "ClusterIP from whoever is not masqueraded, so pods of our own network reach none; deleted by hand they come back",
      ),
    );
  }
  return warning(
    check,
    found,
    advice(
      "kube-ovn-set",
      "remove the ipset that ipvs mode left with `ipset destroy KUBE-CLUSTER-IP`: kube-ovn makes these rules for it; outside of " +
        "ipvs mode they meet only what no rule serves",
    ),
  );
}

const SAYS = { calico: "FelixConfiguration default", cilium: "ConfigMap kube-system/cilium-config" } as const;

/** Calico with BPF serves all services; its clean-up deletes the chains and tables of kube-proxy, which are ours. */
function calico({ others: { pinnedMaps }, api }: NodeFacts): Diagnosis {
  const check = "Calico with BPF";
  const reading = api.kind === "answers" ? api.calico : undefined;
  const maps = pinnedMaps?.filter((name) => /^cali_v[46]_nat_fe/.test(name)) ?? [];
  const leave =
    "have Calico program iptables or nftables (bpfEnabled: false), or run no other service proxy: it serves services itself";
  if (reading?.kind === "found" && reading.value.enabled) {
    const { cleansUp } = reading.value;
    const found = `${SAYS.calico} has bpfEnabled: true${cleansUp ? ", and its clean-up deletes a proxy's chains and tables" : ""}`;
    const what = cleansUp ? `${leave}; at the least set bpfKubeProxyIptablesCleanupEnabled: false` : leave;
    return bad(check, found, advice("calico-bpf", what));
  }
  if (maps.length > 0) {
    return warning(
      check,
      `its maps of services are pinned on this node: ${maps.join(", ")}`,
      advice("calico-maps", `${leave}; maps that BPF mode left do nothing`),
    );
  }
  return bySigns(check, reading, pinnedMaps, SAYS.calico);
}

/**
 * A Cilium that replaces kube-proxy translates before any rule sees a packet: what is programmed alongside it does
 * nothing.
 */
function cilium({ others: { pinnedMaps, ciliumChains }, api }: NodeFacts): Diagnosis {
  const check = "Cilium in kube-proxy's place";
  const reading = api.kind === "answers" ? api.cilium : undefined;
  const leave =
    "set kubeProxyReplacement: false in Cilium's values, or run no other service proxy: Cilium translates before any rule sees a packet";
  if (reading?.kind === "found") {
    const value = reading.value;
    if (!REPLACING.has(value)) return good(check, `no: kube-proxy-replacement is ${JSON.stringify(value)}`);
    return bad(
      check,
      `${SAYS.cilium} has kube-proxy-replacement: ${JSON.stringify(value)}`,
      advice("cilium-replaces", leave),
    );
  }
  const maps = pinnedMaps?.filter((name) => /^cilium_lb[46]_services/.test(name)) ?? [];
  if (maps.length > 0) {
    const found = `its maps of services are pinned on this node: ${maps.join(", ")}; whether it replaces kube-proxy they do not say`;
    return warning(check, found, look(leave));
  }
  if (ciliumChains !== undefined && ciliumChains.length > 0) {
    const found = `there are its chains: ${ciliumChains.slice(0, 3).join(", ")}; whether it replaces kube-proxy they do not say`;
    return warning(check, found, look(leave));
  }
  return bySigns(check, reading, pinnedMaps, SAYS.cilium);
}

function look(leave: string): Advice {
  return advice("cilium-look", `look into ${SAYS.cilium}: kube-proxy-replacement. If it is true: ${leave}`);
}

/** What Cilium has called it; `partial` and `probe` are of versions before 1.14. */
const REPLACING: ReadonlySet<string> = new Set(["true", "strict", "partial", "probe"]);

/** Nothing speaks for it; whether everything that would was looked at. */
function bySigns(
  check: string,
  reading: ObjectReading<unknown> | undefined,
  maps: readonly string[] | undefined,
  object: string,
): Diagnosis {
  if (reading !== undefined && reading.kind !== "forbidden") return good(check, "no");
  if (maps !== undefined) return good(check, "no sign of it on this node");
  const why = reading === undefined ? `no API server was asked for ${object}` : `${object} may not be read`;
  return unknown(check, `pinned BPF maps cannot be listed, and ${why}`, {
    ...asRoot("or give a --kubeconfig that may read it"),
    name: "read-settings",
  });
}

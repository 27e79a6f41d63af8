/** What the doctor says of other networks. */

import { LEAVING_RULES, type OwnershipRow } from "@fairlead/intake";
import { type Advice, advice, asRoot } from "./advice.ts";
import { bad, good, unknown, warning } from "./diagnosis.ts";
import type { AgentDecisions, Diagnosis, IsolatedService, NodeFacts, ObjectReading } from "./facts.ts";
import { named } from "./rules.ts";

/** Where services are left to other networks: whether anyone is left without an answer, and whether nodes agree. */
export function networks({ networks: facts }: NodeFacts): readonly Diagnosis[] {
  if (facts === undefined) return [];
  const { called, agents } = facts;
  if ("problem" in agents) return [calledServices(called), unasked(agents.problem)];
  if (agents.length === 0) return [calledServices(called), unasked("no agent's pod is found")];
  const silent = agents.filter((one) => "problem" in one).map(({ node }) => node);
  const answered = agents.filter(isAnswered);
  return [calledServices(called), decisions(answered, silent), ...kept(answered)];
}

/** Networks that serve services themselves, or take the proxy's rules away. */
export function otherNetworks(facts: NodeFacts): readonly Diagnosis[] {
  return [kubeOVN(facts), calico(facts), cilium(facts)];
}

/** Services whose pods nodes reach by no address that EndpointSlices have: they are their own network's to serve. */
export function isolated({ isolated: services = [], api }: NodeFacts): readonly Diagnosis[] {
  if (services.length === 0) return [];
  const check = "Services in networks that nodes do not share";
  const subnets = api.kind === "answers" ? api.subnets : undefined;
  const served = services.filter(({ isServed }) => isServed);
  if (served.length === 0) return [good(check, `left to their networks: ${byNetwork(services, subnets)}`)];
  const rules = [...new Set(served.map(({ network }) => LEAVING_RULES[network.kind]))];
  const what = `add ${rules.join(" and ")} to multiCNI.serviceRules: what is served of them here leads nowhere, or to another pod`;
  return [
    warning(
      check,
      `served here, where no node can reach the pods: ${byNetwork(served, subnets)}`,
      advice("leave-isolated", what),
    ),
  ];
}

/** Services, and nodes, that a line names; the others are counted. */
const MOST_NAMED = 5;

function unasked(problem: string): Diagnosis {
  const what = "allow list of pods and create of pods/portforward, or ask with --kubeconfig of an operator";
  return unknown("decisions of the nodes", problem, advice("reach-agents", what));
}

function calledServices({ unanswered, unlisted }: NonNullable<NodeFacts["networks"]>["called"]): Diagnosis {
  const check = "Services that the API server calls";
  if (unanswered.length > 0) {
    const found = namedNetworks(
      unanswered.map(({ service, objects }) => `${service} (${objects.slice(0, 2).join(", ")})`),
    );
    const what =
      "set excludedFrontends: excluded-clients, or annotate them fairlead.dev/ownership: ours: they are left to another network, and " +
      "calls from nodes are not answered here";
    return bad(check, `left unanswered: ${found}`, advice("answer-calls", what));
  }
  if (unlisted.length === 0) return good(check, "each is answered on nodes");
  const what = "ask with --kubeconfig of an operator who may";
  return unknown(check, `may not list ${unlisted.join(", ")}`, advice("list-calls", what));
}

type Answered = Exclude<AgentDecisions, { readonly problem: string }>;

function isAnswered(one: AgentDecisions): one is Answered {
  return !("problem" in one);
}

/** What most nodes decide about a service is what the others are compared with. */
function decisions(agents: readonly Answered[], silent: readonly string[]): Diagnosis {
  const check = "decisions of the nodes";
  const rows = agents.flatMap(({ node, services }) => services.map((row) => ({ node, row })));
  const withEndpoints = rows.filter(({ row }) => row.ownEndpoints + row.excludedEndpoints > 0);
  const byService = Map.groupBy(withEndpoints, ({ row }) => `${row.service} ${row.ipFamily}`);
  const differing = new Map<string, string[]>();
  for (const [service, these] of byService) {
    const common = mostCommon(these.map(({ row }) => row.ownership));
    for (const { node, row } of these) {
      if (row.ownership === common) continue;
      const text = `${service} ${row.ownership}, ${common} elsewhere`;
      differing.set(node, [...(differing.get(node) ?? []), text]);
    }
  }
  if (differing.size > 0) {
    const found = namedNetworks(Array.from(differing, ([node, services]) => `${node}: ${namedNetworks(services)}`));
    const what =
      "wait for the removal delay, after which nodes that see the same objects decide the same; then compare versions, configurations and " +
      "fairlead ownership --on NODE";
    return warning(check, found, advice("compare-decisions", what));
  }
  if (silent.length > 0) {
    const what = "look at these agents with `fairlead status`";
    return unknown(
      check,
      `${namedNetworks(silent)}: no answer; the other ${agents.length} decide the same`,
      advice("look-at-agents", what),
    );
  }
  return good(check, `${agents.length} decide the same`);
}

function mostCommon(owners: readonly OwnershipRow["ownership"][]): OwnershipRow["ownership"] | undefined {
  const counted = [...Map.groupBy(owners, (owner) => owner)];
  return counted.sort(([a, as], [b, bs]) => bs.length - as.length || (a < b ? -1 : 1))[0]?.[0];
}

/** CIDRs that are in effect although no object defines them. */
function kept(agents: readonly Answered[]): readonly Diagnosis[] {
  const found = agents.flatMap(({ node, cidrs }) =>
    cidrs.flatMap(({ cidr, source, kept: isKept }) =>
      isKept === true ? [{ node, cidr: `${cidr} of ${source}` }] : [],
    ),
  );
  if (found.length === 0) return [];
  const byCIDR = Array.from(
    Map.groupBy(found, ({ cidr }) => cidr),
    ([cidr, these]) => `${cidr} (${namedNetworks(these.map(({ node }) => node))})`,
  );
  const what =
    "nothing, they end with the removal delay, or once their source can be read; fairlead ownership --forget CIDR ends them now";
  return [
    warning("kept CIDRs", `no object defines them anymore: ${namedNetworks(byCIDR)}`, advice("kept-cidrs", what)),
  ];
}

function namedNetworks(all: readonly string[]): string {
  const more = all.length - MOST_NAMED;
  return `${all.slice(0, MOST_NAMED).join("; ")}${more > 0 ? `; and ${more} more` : ""}`;
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

/** `VPC blue (Subnet blue-net 10.0.1.0/24): shop/api, shop/web` */
function byNetwork(services: readonly IsolatedService[], subnets: readonly VPCSubnet[] = []): string {
  const groups = Map.groupBy(services, ({ network: { kind, name } }) => `${kind} ${name}`);
  const lines = Array.from(groups, ([network, these]) => {
    const [first] = these;
    const own = first?.network.kind === "VPC" ? subnets.filter(({ vpc }) => vpc === first.network.name) : [];
    const where =
      own.length === 0 ? network : `${network} (${named(own.map(({ name, cidr }) => `Subnet ${name} ${cidr}`))})`;
    return `${where}: ${named([...new Set(these.map(({ service }) => service))].sort())}`;
  });
  const more = lines.length - MOST_NETWORKS;
  return `${lines.slice(0, MOST_NETWORKS).join("; ")}${more > 0 ? `; and ${more} more networks` : ""}`;
}

const MOST_NETWORKS = 5;

type VPCSubnet = NonNullable<Extract<NodeFacts["api"], { kind: "answers" }>["subnets"]>[number];

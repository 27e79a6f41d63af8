import { hostCIDR } from "@fairlead/base";
import type { ModeNeeds } from "@fairlead/core";
import { type ApiFacts, factsOf, MODES, type NamedCIDR, type NodeFacts, type NodeState } from "@fairlead/inspect";
import { nodeLockProcess, type Runner } from "@fairlead/kernel";
import type { AgentSetup } from "../../inputs/agent.ts";
import { isOfIptables } from "../../node/read-state.ts";
import { type Attempt, attemptWith, isThere, outputOf } from "./command-result.ts";
import { fastPathFacts } from "./fast-path.ts";
import { otherInstances } from "./instances.ts";
import type { ClusterNetworks } from "./networks.ts";
import { othersFacts, pinnedMaps } from "./others.ts";
import { countOf, listedRules } from "./rules.ts";
import { uplinkFacts } from "./uplinks.ts";

const SYSCTLS = ["net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding", "net/bridge/bridge-nf-call-iptables"] as const;

/** What else is known, and where it is looked. */
interface NodeFactsOptions {
  readonly serviceCIDRs: readonly string[];
  readonly api: ApiFacts;
  /** What the cluster says of its networks. */
  readonly networks?: ClusterNetworks | undefined;
  /** Whether the runner starts programs on this host: the processes of another host are not seen here. */
  readonly here: boolean;
  /** What the running proxy says of itself; undefined: none answers. */
  readonly running: { readonly mode: string } | undefined;
}

/** Looks at a node. What may not be read is undefined; what does not exist is reported as such. */
export async function nodeFacts(
  { mode, config, filter }: AgentSetup,
  { serviceCIDRs, api, networks: read, here, running }: NodeFactsOptions,
  state: NodeState,
  runner: Runner,
): Promise<NodeFacts> {
  const attempt = attemptWith(runner);
  const { needs, nftTables: own, semantics } = factsOf(mode);
  const present = listedRules(state);
  const variant = present.length === 0 ? undefined : state.rules?.find(({ inUse }) => inUse)?.variant;
  const allProcesses = await seesAllProcesses(attempt);
  const cidr = (use: NamedCIDR["use"]) => (text: string) => ({ use, cidr: text });
  const addresses = (state.addresses ?? []).map(({ address }) => address);
  const services = new Set([
    ...serviceCIDRs.flatMap((given) => given.split(",")),
    ...(read?.learned?.serviceCIDRs ?? []),
  ]);
  const sysctls = await Promise.all(
    [...SYSCTLS, ...needs.sysctls.map(({ key }) => key)].map(
      async (key) => [key, await attempt("cat", `/proc/sys/${key}`)] as const,
    ),
  );
  const { serviceProxyName } = config;
  const uplinks = await uplinkFacts(config, state, attempt);
  const fastPath = own && (await fastPathFacts(config, state, attempt));
  const tables = state.tableNames?.flatMap(({ family, name }) => (isOfIptables(name) ? [] : [`${family} ${name}`]));
  return {
    needs: {
      ...needs,
      ...(config.userspace.only && { iptables: [] }),
      ...(own && { nftTables: own(serviceProxyName) }),
    },
    ...(variant !== undefined && { variant }),
    mayReadRules: present.some((rules) => rules.variant === variant && rules.text !== undefined),
    rules: present.map(countOf),
    others: othersFacts(present, await pinnedMaps(attempt, allProcesses)),
    nftTables: tables,
    instances: await otherInstances(tables, serviceProxyName, here && allProcesses),
    ...(serviceProxyName !== "" && { serviceProxyName }),
    sysctls: Object.fromEntries(
      sysctls.flatMap(([key, seen]) => (seen.kind === "absent" ? [] : [[key, outputOf(seen)?.trim()]])),
    ),
    kernel: {
      "connection tracking": isThere(await attempt("cat", "/proc/sys/net/netfilter/nf_conntrack_max")),
      ...(await partsOf(needs, attempt)),
    },
    proxies: await proxies(attempt, serviceProxyName, here),
    ...(running && { running: { ...running, nftTables: tablesOf(running.mode, serviceProxyName) } }),
    allProcesses,
    routes: state.routes?.flatMap(({ cidr }) => (/\/0$/.test(cidr) ? [] : [cidr])),
    cidrs: [
      ...config.clusterCIDRs.map(cidr("pods")),
      ...filter.excludeCIDRs.map(cidr("excluded pods")),
      ...(read?.learned?.cidrs ?? []),
      ...[...services].map(cidr("services")),
      ...addresses.filter((address) => !isLocal(address)).map((address) => cidr("node")(hostCIDR(address))),
    ],
    ...(uplinks && { uplinks }),
    ...(fastPath && { fastPath }),
    ...(filter.excludedFrontends === "excluded-clients" && { tellsClients: semantics.excludesClients === true }),
    api,
    ...(read && { networks: read.facts }),
  };
}

/** None of a mode that is not known here. */
function tablesOf(mode: string, serviceProxyName: string): readonly string[] {
  const known = MODES.find((one) => one === mode);
  return (known && factsOf(known).nftTables?.(serviceProxyName)) ?? [];
}

/** Whether the parts of the kernel that a mode needs are there. */
async function partsOf({ kernelParts }: ModeNeeds, attempt: Attempt): Promise<NodeFacts["kernel"]> {
  const found = kernelParts.map(async ({ name, probe }) => [name, isThere(await attempt(...probe))] as const);
  return Object.fromEntries(await Promise.all(found));
}

/** Loopback, link-local addresses and those by which pods know the node. */
function isLocal(address: string): boolean {
  return /^(?:127\.|169\.254\.|::1$|fe80:)/.test(address);
}

async function proxies(attempt: Attempt, serviceProxyName: string, here: boolean): Promise<NodeFacts["proxies"]> {
  // An agent with a name is there alongside the node's first proxy, whichever that is.
  const isBeside = serviceProxyName !== "";
  const fairlead = here ? await nodeLockProcess(serviceProxyName).catch(() => undefined) : undefined;
  const listed = outputOf(await attempt("ps", "-e", "-o", "pid=,comm=")) ?? "";
  const others = [...listed.matchAll(/^ *(\d+) (kube-proxy|cilium-agent|kube-router)$/gm)];
  const seen = (isBeside ? [] : others).map(([, pid, name = ""]) => ({ pid: Number(pid), name }));
  const isHere = await Promise.all(seen.map(({ pid }) => sharesNetwork(attempt, pid)));
  return [
    ...(fairlead === undefined ? [] : [{ pid: fairlead, name: "fairlead-proxy" }]),
    ...seen.filter((_, at) => isHere[at]),
  ];
}

/** Whether a process writes the rules that are looked at: one of another network namespace (kind, a test) does not. */
async function sharesNetwork(attempt: Attempt, pid: number): Promise<boolean> {
  const [own, its] = await Promise.all(
    ["self", pid].map(async (process) => outputOf(await attempt("readlink", `/proc/${process}/ns/net`))),
  );
  return own === undefined || its === undefined || own === its;
}

/** The first process namespace's number in every kernel (PROC_PID_INIT_INO of linux/proc_ns.h). */
const HOST_PROCESSES = "pid:[4026531836]";

/** Root of the host sees every process and what it has open; others may not look, or are in a pod. */
async function seesAllProcesses(attempt: Attempt): Promise<boolean> {
  const namespace = outputOf(await attempt("readlink", "/proc/self/ns/pid"))?.trim();
  const first = await attempt("ls", "/proc/1/fd");
  return namespace === HOST_PROCESSES && first.kind === "seen" && (await attempt("ps", "-e")).kind === "seen";
}

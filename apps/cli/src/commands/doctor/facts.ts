/** What a node's kernel and programs say. */

import { FLOWTABLE, tableName } from "@fairlead/backend-nftables";
import { hostCIDR, parseJSON, textAt } from "@fairlead/base";
import { type AgentConfig, whyNotAuto } from "@fairlead/config";
import type { ModeNeeds } from "@fairlead/core";
import {
  type ApiFacts,
  type FastPathFacts,
  factsOf,
  instanceOfTable,
  MODES,
  type NamedCIDR,
  type NodeFacts,
  type NodeState,
  type RuleCount,
  refusedObjects,
} from "@fairlead/inspect";
import { CommandError, nodeLockProcess, type Runner } from "@fairlead/kernel";
import type { NftTable } from "@fairlead/netfilter/nft";
import type { AgentSetup } from "../../inputs/agent.ts";
import type { RunningProxy } from "../../inputs/configuration.ts";
import { isOfCoreutils } from "../../node/coreutils.ts";
import { fastPathDevices } from "../../node/fast-path-devices.ts";
import { isOfIptables } from "../../node/read-state.ts";
import type { ClusterFacts } from "./cluster.ts";

const SYSCTLS = ["net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding", "net/bridge/bridge-nf-call-iptables"] as const;

/** What else is known, and where it is looked. */
interface NodeFactsOptions {
  readonly serviceCIDRs: readonly string[];
  readonly api: ApiFacts;
  readonly cluster?: ClusterFacts | undefined;
  /** Whether the runner starts programs on this host: the processes of another host are not seen here. */
  readonly here: boolean;
  /** What the running proxy says of itself; undefined: none answers. */
  readonly running: RunningProxy | undefined;
}

/** Looks at a node. What may not be read is undefined; what does not exist is reported as such. */
export async function nodeFacts(
  { mode, config, filter }: AgentSetup,
  { serviceCIDRs, api, cluster, here, running }: NodeFactsOptions,
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
    ...(cluster?.learned?.serviceCIDRs ?? []),
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
    ...nodeLocalDNS(present, state),
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
    ...(running && { running: await runningFacts(running, serviceProxyName) }),
    allProcesses,
    routes: state.routes?.flatMap(({ cidr }) => (/\/0$/.test(cidr) ? [] : [cidr])),
    cidrs: [
      ...config.clusterCIDRs.map(cidr("pods")),
      ...filter.excludeCIDRs.map(cidr("excluded pods")),
      ...(cluster?.learned?.cidrs ?? []),
      ...[...services].map(cidr("services")),
      ...addresses.filter((address) => !isLocal(address)).map((address) => cidr("node")(hostCIDR(address))),
    ],
    ...(uplinks && { uplinks }),
    ...(fastPath && { fastPath }),
    ...(filter.excludedFrontends === "excluded-clients" && {
      distinguishesClients: semantics.excludesClients === true,
    }),
    api,
    ...cluster?.facts,
  };
}

async function runningFacts({ mode, page }: RunningProxy, serviceProxyName: string) {
  const metrics = await page("/metrics").catch(() => "");
  return { mode, nftTables: tablesOf(mode, serviceProxyName), refused: refusedObjects(metrics) };
}

/** None of a mode that is not known here. */
function tablesOf(mode: string, serviceProxyName: string): readonly string[] {
  const known = MODES.find((one) => one === mode);
  return (known && factsOf(known).nftTables?.(serviceProxyName)) ?? [];
}

async function partsOf({ kernelParts }: ModeNeeds, attempt: Attempt): Promise<NodeFacts["kernel"]> {
  const found = kernelParts.map(async ({ name, probe }) => [name, isThere(await attempt(...probe))] as const);
  return Object.fromEntries(await Promise.all(found));
}

/** Loopback, link-local addresses and those by which pods know the node. */
function isLocal(address: string): boolean {
  return /^(?:127\.|169\.254\.|::1$|fe80:)/.test(address);
}

async function proxies(attempt: Attempt, serviceProxyName: string, here: boolean): Promise<NodeFacts["proxies"]> {
  // An agent with a name runs alongside the node's first proxy, whichever that is.
  const isSecond = serviceProxyName !== "";
  const fairlead = here ? await nodeLockProcess(serviceProxyName).catch(() => undefined) : undefined;
  const listed = outputOf(await attempt("ps", "-e", "-o", "pid=,comm=")) ?? "";
  const others = [...listed.matchAll(/^ *(\d+) (kube-proxy|cilium-agent|kube-router)$/gm)];
  const seen = (isSecond ? [] : others).map(([, pid, name = ""]) => ({ pid: Number(pid), name }));
  const isHere = await Promise.all(seen.map(({ pid }) => sharesNetwork(attempt, pid)));
  return [
    ...(fairlead === undefined ? [] : [{ pid: fairlead, name: "fairlead-proxy" }]),
    ...seen.filter((_, at) => isHere[at]),
  ];
}

/**
 * Whether a process writes the rules that are looked at, as far as is known: one of another network namespace (kind, a
 * test) does not, nor one that has ended since it was listed.
 */
async function sharesNetwork(attempt: Attempt, pid: number): Promise<boolean> {
  // Only with -v it reports why it failed.
  const namespaceOf = (process: string | number) => attempt("readlink", "-v", `/proc/${process}/ns/net`);
  const its = await namespaceOf(pid);
  if (its.kind !== "seen") return its.kind === "unseen";
  const own = outputOf(await namespaceOf("self"));
  return own === undefined || own === its.text;
}

/** The first process namespace's number in every kernel (PROC_PID_INIT_INO of linux/proc_ns.h). */
const HOST_PROCESSES = "pid:[4026531836]";

/** Root of the host sees every process and what it has open; others may not look, or are in a pod. */
async function seesAllProcesses(attempt: Attempt): Promise<boolean> {
  const namespace = outputOf(await attempt("readlink", "/proc/self/ns/pid"))?.trim();
  const first = await attempt("ls", "/proc/1/fd");
  return namespace === HOST_PROCESSES && first.kind === "seen" && (await attempt("ps", "-e")).kind === "seen";
}

/**
 * Agents with a service proxy name, by the tables that they have on a node.
 *
 * @param tables `ip fairlead-edge`; undefined: they cannot be listed
 * @param own the name of the agent that is looked at, which is left out
 * @param seesAll whether each process of the node would be seen from here
 */
async function otherInstances(
  tables: readonly string[] = [],
  own: string,
  seesAll: boolean,
): Promise<NonNullable<NodeFacts["instances"]>> {
  const byName = Map.groupBy(tables, (table) => instanceOfTable(table.slice(table.indexOf(" ") + 1)));
  const found = [...byName].map(async ([name, its]) => {
    if (name === undefined || name === own) return [];
    const pid = seesAll ? await nodeLockProcess(name).catch(() => undefined) : undefined;
    return [{ name, tables: its, running: seesAll ? pid !== undefined : undefined }];
  });
  return (await Promise.all(found)).flat();
}

/** kube-ovn's own form of it, with whatever iptables writes behind. */
const REJECT = /^-A (?:INPUT|OUTPUT) .*! --mark 0x4000\/0x4000 .*--match-set ovn[46]0services dst .*-j REJECT\b.*$/gm;
/** A proxy in ipvs mode asks a set for the addresses of services; kube-ovn asks the same one, in a chain of its own. */
const BY_SETS = /^-A KUBE-SERVICES .*--match-set KUBE-(?:6-)?CLUSTER-IP /m;
const CILIUM_CHAIN = /^:(CILIUM_\S+) /gm;

/** What other networks left in the rules of this host, of both variants and families. */
function othersFacts(listed: readonly ListedRules[], maps: NodeFacts["others"]["pinnedMaps"]): NodeFacts["others"] {
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

/** In table raw (kubernetes/dns, cmd/node-cache/app/cache_app.go); tools list its target in two ways. */
const UNTRACKED_DNS = /^-A PREROUTING -d ([^/ ]+)\/\d+ -p udp .*--dport 53 .*-j (?:NOTRACK|CT --notrack)$/gm;

function nodeLocalDNS(
  listed: readonly ListedRules[],
  { addresses }: Pick<NodeState, "addresses">,
): Pick<NodeFacts, "nodeLocalDNS"> {
  if (listed.some(({ text }) => text === undefined)) return {};
  const rules = listed.flatMap(({ variant, text = "", ipv6 = "" }) => [
    ...Array.from(text.matchAll(UNTRACKED_DNS), ([, address = ""]) => ({ address, tool: `iptables-${variant}` })),
    ...Array.from(ipv6.matchAll(UNTRACKED_DNS), ([, address = ""]) => ({ address, tool: `ip6tables-${variant}` })),
  ]);
  const devices = (wanted: string) =>
    addresses?.flatMap(({ address, interface: device }) => (address === wanted ? [device] : []));
  return { nodeLocalDNS: rules.map((one) => ({ ...one, devices: devices(one.address) })) };
}

/** Where the tools of iproute2, Calico and Cilium pin maps that all programs of a node share. */
const PINNED = "/sys/fs/bpf/tc/globals";

/**
 * Names of maps; undefined: they cannot be listed. From a pod the host's file system of BPF is not seen: that nothing
 * is there says nothing then.
 *
 * @param onHost whether the host's own processes, and so its file systems, are seen
 */
async function pinnedMaps(attempt: Attempt, onHost: boolean): Promise<readonly string[] | undefined> {
  const seen = await attempt("ls", PINNED);
  if (seen.kind === "seen") return seen.text.split("\n").filter((name) => name !== "");
  return seen.kind === "absent" && onHost ? [] : undefined;
}

/** What one variant of iptables holds, as its own tool lists it. */
interface ListedRules {
  readonly variant: RuleCount["variant"];
  /** Of IPv4, all tables; undefined: it may not be read. */
  readonly text: string | undefined;
  /** Of IPv6; undefined: it may not be read, or there is no tool for it. */
  readonly ipv6: string | undefined;
}

function listedRules({ rules = [] }: NodeState): readonly ListedRules[] {
  return (["nft", "legacy"] as const).flatMap((variant) => {
    const [ipv4, ipv6] = (["IPv4", "IPv6"] as const).map((family) =>
      rules.find((one) => one.variant === variant && one.family === family),
    );
    return ipv4 === undefined || ipv4.notInstalled ? [] : [{ variant, text: ipv4.save, ipv6: ipv6?.save }];
  });
}

/** As the variant of a host is known. */
const HINT = /^:(?:KUBE-IPTABLES-HINT|KUBE-KUBELET-CANARY) /m;

function countOf({ variant, text }: ListedRules): RuleCount {
  const rules = (text ?? "").split("\n").filter((line) => line.startsWith("-A "));
  const proxy = rules.filter((line) => / KUBE-|^-A KUBE-/.test(line)).length;
  const dropping = droppingChains(text ?? "");
  const hinted = HINT.test(text ?? "");
  return { variant, hinted, proxy, others: rules.length - proxy, dropping, readable: text !== undefined };
}

function droppingChains(text: string): readonly string[] {
  const [, filter = ""] = /^\*filter\n([\s\S]*?)^COMMIT/m.exec(text) ?? [];
  return [...filter.matchAll(/^:(\S+) DROP /gm)].map(([, chain = ""]) => chain);
}

/**
 * The interfaces whose clients `replyVia` answers by them, but for the one by which the node would answer anyway, with
 * the kernel's filter of what comes in by them. Undefined: it is not set.
 */
async function uplinkFacts(
  { replyVia }: Pick<AgentConfig, "replyVia">,
  { routes = [] }: NodeState,
  attempt: Attempt,
): Promise<NodeFacts["uplinks"]> {
  if (replyVia === undefined) return undefined;
  const defaults = routes.filter(({ cidr }) => cidr === "0.0.0.0/0");
  const inOrder = defaults.toSorted((a, b) => (a.metric ?? 0) - (b.metric ?? 0));
  const found = inOrder.flatMap(({ devices }) => devices.slice(0, 1));
  const wanted = replyVia.uplinks === "auto" ? found : replyVia.uplinks.map((uplink) => uplink.interface);
  const names = [...new Set(wanted)].filter((name) => name !== found[0]);
  const all = await filterOf("all", attempt);
  return Promise.all(
    names.map(async (name) => {
      const own = await filterOf(name, attempt);
      // The larger one counts (ip-sysctl, rp_filter).
      return { interface: name, filter: own === undefined || all === undefined ? undefined : Math.max(own, all) };
    }),
  );
}

async function filterOf(name: string, attempt: Attempt): Promise<number | undefined> {
  const text = outputOf(await attempt("cat", `/proc/sys/net/ipv4/conf/${name}/rp_filter`));
  return text === undefined ? undefined : Number(text);
}

/** There where the kernel was built with flowtables, whether their module is loaded or not. */
const TIMEOUT = "/proc/sys/net/netfilter/nf_flowtable_tcp_timeout";

/** What a node shows of the fast path; undefined: it is not configured. */
export async function fastPathFacts(
  config: AgentConfig,
  state: NodeState,
  attempt: Attempt,
): Promise<FastPathFacts | undefined> {
  const { nftables, serviceProxyName, stateDir } = config;
  if (nftables.fastPath === undefined) return undefined;
  const { tables } = state;
  const own = tableName(serviceProxyName);
  const devices = tables && devicesOf(tables.filter(({ name }) => name === own));
  const present = new Set(Array.isArray(devices) ? devices : []);
  const auto = whyNotAuto(config);
  const chosen = fastPathDevices(config, state);
  return {
    flowtables: isThere(await attempt("cat", TIMEOUT)),
    test: await testOf(stateDir, attempt),
    devices,
    refused: Array.from(chosen?.refused ?? [], ([device, reason]) => ({ device, reason })),
    ...(auto !== undefined && { auto }),
    others: (tables ?? []).filter(({ name }) => name !== own).flatMap((table) => sharedBy(table, present)),
  };
}

/** The same in both families, as the agent has them. */
function devicesOf(tables: readonly NftTable[]): FastPathFacts["devices"] {
  const found = tables.flatMap(({ flowtables }) => flowtables?.get(FLOWTABLE) ?? []);
  return found.length === 0 ? "no flowtable" : [...new Set(found.flatMap(({ devices }) => devices))];
}

function sharedBy(table: NftTable, own: ReadonlySet<string>): FastPathFacts["others"] {
  return [...(table.flowtables?.values() ?? [])].flatMap(({ name, devices }) => {
    const shared = devices.filter((device) => own.has(device));
    return shared.length === 0 ? [] : [{ table: `${table.family} ${table.name}`, flowtable: name, devices: shared }];
  });
}

/** What the agent or --init-only noted of this kernel since it booted. */
async function testOf(stateDir: string, attempt: Attempt): Promise<FastPathFacts["test"]> {
  const seen = await attempt("cat", `${stateDir}/fast-path.json`);
  if (seen.kind === "unseen") return { kind: "unknown" };
  const noted = parseJSON(outputOf(seen) ?? "null");
  const boot = outputOf(await attempt("cat", "/proc/sys/kernel/random/boot_id"))?.trim();
  if (textAt(noted, "boot") !== boot) return { kind: "none" };
  const outcome = textAt(noted, "outcome");
  if (outcome === "failed") return { kind: "failed", reason: textAt(noted, "reason") ?? "unknown" };
  return { kind: outcome === "passed" ? "passed" : "none" };
}

export type CommandResult =
  | { readonly kind: "seen"; readonly text: string }
  | { readonly kind: "absent" }
  /** It may be there or not: the right to look is missing, or the program did not end. */
  | { readonly kind: "unseen" };

/** Runs a program that looks at something; never fails. */
type Attempt = (program: string, ...args: readonly string[]) => Promise<CommandResult>;

const DENIED = /permission denied|not permitted|must be root/i;

function attemptWith(runner: Runner): Attempt {
  return async (program, ...args) => {
    try {
      return { kind: "seen", text: (await runner.run([program, ...args])).stdout };
    } catch (error) {
      return { kind: isAnswer(error) ? "absent" : "unseen" };
    }
  };
}

function outputOf(seen: CommandResult): string | undefined {
  return seen.kind === "seen" ? seen.text : undefined;
}

/**
 * A program that is not there, or that ended with another complaint than about rights, found nothing. Where those are
 * not there that print files, nothing was looked at.
 */
function isAnswer(error: unknown): boolean {
  if (!(error instanceof CommandError)) return false;
  if (error.reason === "not-found") return !isOfCoreutils(error.argv[0]);
  return error.reason === "exit" && !DENIED.test(error.stderr);
}

/** Undefined: unknown. */
function isThere({ kind }: CommandResult): boolean | undefined {
  return kind === "unseen" ? undefined : kind === "seen";
}

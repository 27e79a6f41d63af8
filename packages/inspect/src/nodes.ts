/** Nodes and their agents: what Node objects and the pages of an agent say. */

import { fieldsOf, parseJSON } from "@fairlead/base";
import { decodeNode, decodeService, type NodeState, type Ownership } from "@fairlead/core";
import type { ObjectSource, OtherResource } from "@fairlead/watch";
import { readObjects } from "./cluster.ts";

/** What an agent's pages say; absent: it has no such page, or did not give it. */
export interface AgentPages {
  /** `/metrics` of the metrics port, Prometheus' text format. */
  readonly metrics?: string | undefined;
  /** `/proxyMode` of the metrics port. */
  readonly proxyMode?: string | undefined;
  /** `/ownership` of the metrics port; kube-proxy has none. */
  readonly ownership?: string | undefined;
  /** `/livez` of the health port, whatever its status code. */
  readonly livez?: string | undefined;
}

/** Reads what an agent, Fairlead's or kube-proxy, says of itself. What cannot be read is left out. */
export function agentStatus({ metrics = "", proxyMode, ownership, livez }: AgentPages): AgentStatus {
  const { version: build, service_proxy_name: serviceProxyName = "" } =
    samplesOf(metrics, "fairlead_build_info")[0]?.labels ?? {};
  const upstream = samplesOf(metrics, "kubernetes_build_info")[0]?.labels["git_version"];
  const version = build === undefined ? upstream : `v${build}`;
  const program = build === undefined ? "kube-proxy" : "fairlead";
  const mode = proxyMode?.trim();
  const healthy = healthIn(livez);
  const lastSync = lastSyncIn(metrics);
  const owners = ownersIn(ownership);
  return {
    ...(version !== undefined && { program, version }),
    ...(serviceProxyName !== "" && { serviceProxyName }),
    ...(mode !== undefined && mode !== "" && { mode }),
    ...(healthy !== undefined && { healthy }),
    ...(lastSync !== undefined && { lastSync }),
    ...(owners !== undefined && { owners }),
  };
}

/** Kernel objects that an agent leaves out, of its metrics; undefined: they do not say, as kube-proxy's. */
export function refusedObjects(metrics: string): number | undefined {
  const samples = samplesOf(metrics, "fairlead_refused_objects");
  return samples.length === 0 ? undefined : samples.reduce((sum, { value }) => sum + value, 0);
}

const NODES: OtherResource = { group: "", version: "v1", plural: "nodes", kind: "Node", namespaced: false };

const FORBIDDEN =
  'the user may not list nodes; a ClusterRole with this rule allows it: {apiGroups: [""], resources: [nodes], verbs: [list, watch]}';

/** All Nodes of a source, by their names in their order. */
export async function readNodes(source: ObjectSource, signal: AbortSignal): Promise<ReadonlyMap<string, NodeState>> {
  const read = (await readObjects(source, [NODES], signal, { patient: true })).get(NODES);
  if (read?.state === "forbidden") throw new Error(FORBIDDEN);
  if (read?.state !== "synced") throw new Error("given up before all nodes were read");
  const nodes = read.objects.flatMap((raw) => decodeNode(raw).object ?? []);
  return new Map(nodes.map((node) => [node.name, node] as const).sort(([a], [b]) => (a < b ? -1 : 1)));
}

export interface NamedService {
  readonly namespace: string;
  readonly name: string;
}

/**
 * Why a proxy has nothing to do with a Service that there is: it is headless, or left to the proxy of another name.
 * Undefined: there is no such Service, or nothing keeps the proxy from it.
 *
 * @param serviceProxyName the name of the proxy that is asked about; empty: the nodes' first proxies
 * @param signal gives it up
 */
export async function whyIgnored(
  source: ObjectSource,
  { namespace, name }: NamedService,
  serviceProxyName: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const services = { group: "", version: "v1", plural: "services", kind: "Service", namespaced: true };
  const only = { ...services, only: { namespace, name } };
  const read = await readObjects(source, [only], signal, { patient: true });
  const [raw] = read.get(only)?.objects ?? [];
  return raw === undefined ? undefined : decodeService(raw, undefined, { serviceProxyName }).ignored;
}

/** How many services each owner has on a node, by family and service. */
export type OwnerCounts = Readonly<Record<Ownership, number>>;

/** What an agent reports of itself; absent: not reported. kube-proxy reports most of it too. JSON values only. */
export interface AgentStatus {
  readonly program?: "fairlead" | "kube-proxy";
  /** With a v. */
  readonly version?: string;
  /** Of an agent alongside the node's first proxy. */
  readonly serviceProxyName?: string;
  /** The mode that really runs. */
  readonly mode?: string;
  /** Whether the proxy works, as /livez of its health port has it. */
  readonly healthy?: boolean;
  /** When the rules of the family that is behind were last synced, as ISO 8601. */
  readonly lastSync?: string;
  /** Absent where only Fairlead knows (kube-proxy). */
  readonly owners?: OwnerCounts;
}

/** One node of a cluster. A node that does not answer is a row as well. */
export interface NodeStatus extends AgentStatus {
  readonly node: string;
  /** Whether the agent answered. */
  readonly answers: boolean;
  /** Why not, or what could not be read. */
  readonly problem?: string;
  /** How many services differ from what should be programmed; absent: that was not looked at. */
  readonly differences?: number;
  /** When this was read, as ISO 8601. */
  readonly readAt: string;
}

/** Of the families the one that is behind. */
function lastSyncIn(metrics: string): string | undefined {
  const times = samplesOf(metrics, "kubeproxy_sync_proxy_rules_last_timestamp_seconds").map(({ value }) => value);
  const seconds = Math.min(...times);
  return Number.isFinite(seconds) && seconds > 0 ? new Date(seconds * 1000).toISOString() : undefined;
}

function healthIn(livez: string | undefined): boolean | undefined {
  const { healthy } = fieldsOf(parseJSON(livez ?? ""));
  return typeof healthy === "boolean" ? healthy : undefined;
}

function ownersIn(ownership: string | undefined): OwnerCounts | undefined {
  const { services } = fieldsOf(parseJSON(ownership ?? ""));
  if (!Array.isArray(services)) return undefined;
  const of = (owner: Ownership) => services.filter((one) => fieldsOf(one)["ownership"] === owner).length;
  return { ours: of("ours"), foreign: of("foreign"), mixed: of("mixed") };
}

interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/** The samples of one metric in Prometheus' text format; those that are no numbers are left out. */
function samplesOf(text: string, name: string): readonly Sample[] {
  return text.split("\n").flatMap((line) => {
    if (!line.startsWith(name)) return [];
    const [, labels = "", value = ""] = /^(?:\{(.*)\})? (\S+)/.exec(line.slice(name.length)) ?? [];
    const number = Number(value);
    if (value === "" || Number.isNaN(number)) return [];
    const pairs = Array.from(labels.matchAll(LABEL), ([, key = "", of = ""]) => [key, of] as const);
    return [{ labels: Object.fromEntries(pairs), value: number }];
  });
}

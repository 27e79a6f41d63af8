/** Which configuration counts: what options say, what the running proxy has, what it is installed with. */

import { hostname } from "node:os";
import { errorText, fieldsOf } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import { createManifestsSnapshot, type OtherSubscription } from "@fairlead/watch";
import { hasCluster } from "../cluster/access.ts";
import { ApiError } from "../cluster/api-error.ts";
import { otherResource } from "../cluster/resources.ts";
import type { clusterOptions } from "../facts/options.ts";
import type { OptionValues } from "../frame/command.ts";
import type { Context } from "../frame/context.ts";
import { CommandFailure } from "../frame/errors.ts";
import { portsOf, proxyHere, proxyIn } from "../node/agent-endpoint.ts";
import { agentsOf, placedAgent } from "../node/agent-pods.ts";
import { installedConfig, type ProxyConfig, podConfig, runningConfig } from "../node/proxy-config.ts";
import { type AgentSetup, agentSetup, proxySettings } from "./agent.ts";
import { orFailure } from "./cluster-access.ts";

type Values = Omit<OptionValues<typeof clusterOptions>, "mode"> & { readonly mode: AgentConfig["mode"] | undefined };

/** The node whose configuration is wanted. */
export interface WantedProxy {
  /** That of this node, in the cluster. */
  readonly on?: string | undefined;
  /** That of this host, whose kernel is looked at. */
  readonly here?: boolean;
  /** Any of the cluster's will do: what is asked for is the same on every node. */
  readonly any?: boolean;
}

export interface ConfigurationOptions {
  /** What is asked for is the same in every mode: also in one that no plan can be made for. */
  readonly anyMode?: boolean;
  /** Without a configuration the defaults will do. Default: only of manifests. */
  readonly lenient?: boolean;
}

/** How a proxy is set up, and where that was found. */
export interface Configured {
  readonly setup: AgentSetup;
  /** Undefined: nothing has to be said. */
  readonly remark?: string | undefined;
  /** What the running proxy says of itself; undefined: none answers. */
  readonly running?: RunningProxy | undefined;
}

export interface RunningProxy {
  readonly mode: string;
  /** Asks its metrics port for another page. */
  readonly page: NonNullable<ProxyConfig["page"]>;
}

/**
 * How the proxy of a node is set up: as the running one says, else as the ConfigMap says that it is installed with; the
 * options override either, and are compared with it.
 */
export async function configurationOf(
  options: Values,
  wanted: WantedProxy,
  context: Context,
  { anyMode = false, lenient = options.file.length > 0 }: ConfigurationOptions = {},
): Promise<Configured> {
  const asked = await firstOf(sourcesOf(options, wanted, context));
  const { found, reasons } = asked;
  const setup = agentSetup(options, context, { anyMode, base: found?.proxy });
  if (found !== undefined) {
    for (const line of contradictions(found.proxy.from, found.settings, setup.config)) context.warn(line);
    const after = reasons.length === 0 ? "" : `; ${reasons.join("; ")}`;
    const { mode, page } = found.proxy;
    const running = mode === undefined || page === undefined ? undefined : { mode, page };
    return { setup, running, remark: `${found.proxy.from}, ${setup.config.mode} mode${after}` };
  }
  const because = reasons.join("; ");
  const isLive = wanted.here === true || wanted.on !== undefined || options.file.length === 0;
  if (isGiven(options)) return { setup, remark: isLive ? `as the options say; not compared: ${because}` : undefined };
  if (lenient && context.isArchive === undefined)
    return { setup, remark: `assumed ${setup.mode} mode and no --cluster-cidr; ${because}` };
  throw new CommandFailure(
    `the configuration of the proxy is not known: ${because}; give it with --config, or with --mode and --cluster-cidr`,
  );
}

export function sayConfiguration({ remark }: Configured, { warn }: Pick<Context, "warn">): void {
  if (remark !== undefined) warn(`configuration: ${remark}`);
}

function isGiven(options: Values): boolean {
  const { mode, config, "cluster-cidr": own, "exclude-cluster-cidr": excluded, "agent-flag": flags } = options;
  return (mode ?? config) !== undefined || own.length + excluded.length + flags.length > 0;
}

interface Found {
  readonly proxy: ProxyConfig;
  readonly settings: AgentConfig;
}

type Source = () => Promise<ProxyConfig>;

/** The first that can be asked and read, and why those before it cannot. */
async function firstOf(sources: readonly Source[]) {
  const reasons: string[] = [];
  for (const source of sources) {
    try {
      const proxy = await source();
      const found: Found = { proxy, settings: proxySettings(proxy) };
      return { found, reasons: [...new Set(reasons)] };
    } catch (error) {
      if (!(error instanceof CommandFailure)) throw error;
      reasons.push(errorText(error));
    }
  }
  return { found: undefined, reasons: [...new Set(reasons)] };
}

function sourcesOf(
  options: Values,
  { on, here = false, any = false }: WantedProxy,
  context: Context,
): readonly Source[] {
  const { file } = options;
  const own = () => runningConfig(proxyHere(context), portsOf(options).metrics, "the proxy on this host");
  const inFiles = () => configInFiles(file, context);
  if (file.length > 0 && on === undefined) return here ? [own, inFiles] : [inFiles];
  const node = on ?? options.node ?? (any ? undefined : hostname().toLowerCase());
  const isHere = here || (on === undefined && (options.node === undefined || options.node === hostname()));
  const inCluster = hasCluster(options, context) ? clusterSources(options, node, context) : [];
  return [...(isHere ? [own] : []), ...inCluster];
}

/** @param node undefined: any */
function clusterSources(options: Values, node: string | undefined, context: Context): readonly Source[] {
  const agents = agentsOf(options, context);
  const { cluster } = agents;
  let pod: ReturnType<typeof placedAgent> | undefined;
  const placed = async () => {
    pod ??= placedAgent(node, agents);
    const found = await pod;
    if (found !== undefined) return found;
    throw new CommandFailure(`no agent runs ${node === undefined ? "in the cluster" : `on ${node}`}`);
  };
  return [
    async () => {
      const found = await placed();
      return runningConfig(proxyIn(found.container, agents), portsOf(options).metrics, `the proxy on ${found.node}`);
    },
    async () => {
      try {
        return await podConfig(await placed(), cluster);
      } catch (error) {
        if (error instanceof ApiError && error.status === 403) return installedConfig(node, cluster);
        throw error;
      }
    },
  ];
}

/** What decides about packets; how a proxy reaches its API server and logs does not. */
const DECIDES =
  /^(?:mode|clusterCIDR|detectLocal.*|nodePortAddresses|serviceProxyName|serviceNetwork|featureGates\..*|multiCNI\..*|(?:iptables|nftables)\.(?:masquerade|localhost).*|ipvs\.(?:scheduler|strictARP))$/;

/**
 * Where what a user gives differs from what the proxy has, a line each.
 *
 * @param from what messages call the proxy
 */
function contradictions(from: string, proxy: AgentConfig, used: AgentConfig): readonly string[] {
  return Object.entries(used.provenance).flatMap(([path, name]) => {
    const [theirs, ours] = [shown(proxy, path), shown(used, path)];
    if (!DECIDES.test(path) || proxy.provenance[path] === name || theirs === ours) return [];
    return [`${from} has ${path} ${theirs}, ${optionOf(name)} says ${ours}: the latter is used`];
  });
}

/** As the command line tool calls it. */
function optionOf(name: string): string {
  return name === "--proxy-mode" ? "--mode" : name;
}

function shown({ kubeProxyConfiguration, fairleadConfiguration, mode }: AgentConfig, path: string): string {
  if (path === "mode") return mode;
  const value = at(kubeProxyConfiguration, path) ?? at(fairleadConfiguration, path);
  if (value === undefined || value === null || value === "") return "empty";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function at(root: unknown, path: string): unknown {
  return path.split(".").reduce<unknown>((value, key) => fieldsOf(value)[key], root);
}

const KIND = "KubeProxyConfiguration";

/** The configuration in the ConfigMap that manifests have. */
async function configInFiles(
  paths: readonly string[],
  { readStandardInput, signal }: Pick<Context, "readStandardInput" | "signal">,
): Promise<ProxyConfig> {
  const found: ProxyConfig[] = [];
  const configMaps: OtherSubscription = {
    resource: otherResource("v1", "configmaps", "ConfigMap", true),
    decode: (raw) => {
      found.push(...configsIn(raw));
      return undefined;
    },
    onChange: () => {},
    onState: () => {},
  };
  const source = createManifestsSnapshot({
    paths,
    nodeName: "",
    readStandardInput,
    // Most files have no such document, and are not parsed twice.
    prepare: (contents) =>
      contents.map((one) =>
        Buffer.from(one.buffer, one.byteOffset, one.byteLength).includes(KIND) ? one : new Uint8Array(),
      ),
  });
  await orFailure("-f ", source.run({ others: [configMaps] }, signal));
  const [first, second] = found;
  if (first === undefined) throw new CommandFailure("the files have no ConfigMap with a KubeProxyConfiguration");
  if (second !== undefined) {
    throw new CommandFailure(`the files have several configurations: ${found.map(({ from }) => from).join(", ")}`);
  }
  return first;
}

function configsIn(raw: unknown): readonly ProxyConfig[] {
  const { metadata, data } = fieldsOf(raw);
  const { namespace = "default", name } = fieldsOf(metadata);
  return Object.values(fieldsOf(data)).flatMap((text) =>
    typeof text === "string" && text.includes(`kind: ${KIND}`)
      ? [{ from: `ConfigMap ${namespace}/${name}`, flags: [], text }]
      : [],
  );
}

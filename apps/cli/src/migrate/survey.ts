/** What of kube-proxy's setup and of the pod networks fits, differs or blocks, and what is installed. */

import { posix } from "node:path";
import {
  containsCIDR,
  errorText,
  fieldsOf,
  itemsOf,
  objectAt,
  parseCIDRLeniently,
  type RawObject,
  stringOf,
  valueAt,
} from "@fairlead/base";
import { type AgentConfig, formatError, type ParseResult, parseArguments } from "@fairlead/config";
import { cidrsOf, networkSource, type ResourceRef, type SourceName, sourceKinds } from "@fairlead/networks";
import { parseAllDocuments, stringify } from "yaml";
import type { Finding } from "../frame/text.ts";
import { CONFIG_FOLDER, type Installation, type InstallationOptions } from "./manifests.ts";
import { podSpecOf } from "./state.ts";

/** What of a cluster a survey looks at, straight from JSON. */
export interface SurveyObjects {
  readonly kubeProxy: unknown;
  /** The ConfigMaps that `kubeProxySetup` names, those that are there, by their names. */
  readonly configMaps: ReadonlyMap<string, unknown>;
  /** The Service `default/kubernetes`. */
  readonly apiService: unknown;
  /** Objects of `networkResources`, by `plural.group`. */
  readonly networks: ReadonlyMap<string, readonly unknown[]>;
}

export interface Survey {
  /** With one that `blocks` nothing is changed before it is fixed. */
  readonly findings: readonly Finding[];
  /** What would be installed; absent: something blocks it. */
  readonly installation?: Installation;
  /** As Fairlead reads what it would be given. */
  readonly config?: AgentConfig;
}

interface SurveyOptions extends InstallationOptions {
  /** Fairlead's own. */
  readonly version: string;
}

/** What of kube-proxy's setup fits Fairlead, what differs, and what would be installed in its place. */
export function survey(objects: SurveyObjects, options: SurveyOptions): Survey {
  const setup = kubeProxySetup(objects.kubeProxy);
  const files = filesOf(setup, objects.configMaps);
  if (typeof files === "string") return { findings: [blocking("configuration", files, MANUAL)] };
  const { version, ...wanted } = options;
  const { apiServer } = wanted;
  let config = "";
  try {
    config = fairleadConfig(files["config.conf"], wanted);
  } catch (error) {
    return { findings: [blocking("configuration", `${setup.config?.path}: ${errorText(error)}`)] };
  }
  const kubeconfig = files["kubeconfig.conf"];
  const own = {
    "config.conf": config,
    "kubeconfig.conf": apiServer === undefined ? kubeconfig : withServer(kubeconfig, apiServer),
  };
  const installation = { options: wanted, flags: setup.otherFlags, files: own };
  const parsed = parsedConfig(installation, version);
  const findings = [
    ...configFindings(parsed),
    ...serverFindings(own["kubeconfig.conf"], objects.apiService),
    ...(parsed.kind === "run"
      ? networkFindings(objects.networks, parsed.config.clusterCIDRs, parsed.config.multiCNI.excludeClusterCIDRs)
      : []),
  ];
  if (findings.some(({ state }) => state === "blocks")) return { findings };
  return { findings, installation, ...(parsed.kind === "run" && { config: parsed.config }) };
}

/** How kube-proxy's container is started, and from where it has its configuration. */
export interface KubeProxySetup {
  readonly image: string;
  /** Of the command line, without the program. */
  readonly flags: readonly string[];
  /** In addition to `--config` and `--hostname-override`, which every installation has. */
  readonly otherFlags: readonly string[];
  /** The ConfigMaps that its container has as folders. */
  readonly mounts: readonly { readonly folder: string; readonly configMap: string }[];
  /** The file that --config names; absent: it is in none of them. */
  readonly config?: MountedFile;
}

/** Whether a DaemonSet, straight from JSON, looks like kube-proxy's for Linux: by its program or its image. */
export function isKubeProxy(daemonSet: unknown): boolean {
  const pod = podSpecOf(daemonSet);
  const system = fieldsOf(pod["nodeSelector"])["kubernetes.io/os"] ?? "linux";
  const containers = itemsOf(pod["containers"]).map(fieldsOf);
  return (
    system === "linux" &&
    containers.some(({ image, command }) => {
      const [program = ""] = textsOf(command);
      return posix.basename(program) === "kube-proxy" || isKubeProxyImage(stringOf(image) ?? "");
    })
  );
}

/** Whether an image is kube-proxy's own, by its name: Fairlead's runs under kube-proxy's command, too. */
export function isKubeProxyImage(image: string): boolean {
  return /(?:^|\/)kube-proxy(?:[:@]|$)/.test(image);
}

export function kubeProxySetup(daemonSet: unknown): KubeProxySetup {
  const pod = podSpecOf(daemonSet);
  const containers = itemsOf(pod["containers"]).map(fieldsOf);
  const container = containers.find(({ name }) => name === "kube-proxy") ?? containers[0] ?? {};
  const [, ...ownArguments] = textsOf(container["command"]);
  const flags = joined([...ownArguments, ...textsOf(container["args"])]);
  const path = flags.map((flag) => /^--config=(.*)$/.exec(flag)?.[1]).findLast((found) => found !== undefined);
  const mounts = mountsOf(container, pod);
  const config = path === undefined ? undefined : mountedFile(path, mounts);
  return {
    image: stringOf(container["image"]) ?? "",
    flags,
    otherFlags: flags.filter((flag) => !/^--(?:config|hostname-override)=/.test(flag)),
    mounts,
    ...(config === undefined ? {} : { config }),
  };
}

/** Sources with objects that describe a network; Nodes belong to every cluster. */
const NETWORK_SOURCES: readonly SourceName[] = (Object.keys(sourceKinds) as SourceName[]).filter((name) =>
  networkSource(name).resources.every(({ group }) => group !== ""),
);

/** The resources in which pod networks define their CIDRs; in most clusters few are there. */
export function networkResources(): readonly ResourceRef[] {
  return NETWORK_SOURCES.flatMap((name) => networkSource(name).resources);
}

const MANUAL = "install Fairlead by hand (docs/migrate-from-kube-proxy.md)";

function blocking(topic: string, found: string, advice?: string): Finding {
  return { topic, state: "blocks", found, ...(advice === undefined ? {} : { advice }) };
}

/** A text says why they are unavailable. */
function filesOf({ config, mounts }: KubeProxySetup, configMaps: SurveyObjects["configMaps"]): Files | string {
  if (config === undefined) return "kube-proxy has no --config that a ConfigMap is mounted for";
  const text = textIn(config, configMaps);
  if (text === undefined) return `ConfigMap ${config.configMap} has no ${config.key}`;
  const path = kubeconfigPathIn(text) ?? `${config.folder}/kubeconfig.conf`;
  const place = mountedFile(path, mounts);
  if (place === undefined) return `kube-proxy's kubeconfig ${path} is in no ConfigMap`;
  const kubeconfig = textIn(place, configMaps);
  if (kubeconfig === undefined) return `ConfigMap ${place.configMap} has no ${place.key}`;
  return { "config.conf": text, "kubeconfig.conf": kubeconfig };
}

type Files = Installation["files"];

/** A file of a container: a key of a ConfigMap. */
interface MountedFile {
  readonly path: string;
  readonly folder: string;
  readonly configMap: string;
  readonly key: string;
}

function textIn({ configMap, key }: MountedFile, configMaps: SurveyObjects["configMaps"]): string | undefined {
  return stringOf(valueAt(configMaps.get(configMap), "data", key));
}

/** What the agent makes of what it would be given, on a node of any name. */
function parsedConfig({ flags, files }: Installation, version: string): ParseResult {
  const argv = [`--config=${CONFIG_FOLDER}/config.conf`, "--hostname-override=node", ...flags];
  return parseArguments(argv, { readFile: () => files["config.conf"], version });
}

function configFindings(parsed: ParseResult): readonly Finding[] {
  if (parsed.kind === "usage-error") return [blocking("flags", parsed.message.split("\n", 1)[0] ?? "")];
  if (parsed.kind !== "run" && parsed.kind !== "invalid") return [blocking("flags", "one of them ends the agent")];
  const warnings = parsed.warnings.map((found) => ({ topic: "configuration", state: "differs", found }) as const);
  if (parsed.kind === "invalid")
    return [...parsed.errors.map((error) => blocking("configuration", formatError(error))), ...warnings];
  const { mode, clusterCIDRs } = parsed.config;
  const cidrs = clusterCIDRs.length === 0 ? "no clusterCIDR" : `clusterCIDR ${clusterCIDRs.join(", ")}`;
  return [{ topic: "configuration", state: "fits", found: `mode ${mode}, ${cidrs}` }, ...warnings];
}

function serverFindings(kubeconfig: string, apiService: unknown): readonly Finding[] {
  const spec = objectAt(apiService, "spec");
  const served = new Set([...itemsOf(spec["clusterIPs"]), spec["clusterIP"]]);
  return serversOf(kubeconfig).map((server) => {
    const host = URL.canParse(server) ? new URL(server).hostname.replace(/^\[(.*)\]$/, "$1") : "";
    if (host === "")
      return blocking("API server", `${server} is not a URL`, "set its address: --api-server=https://HOST:6443");
    if (!served.has(host)) return { topic: "API server", state: "fits", found: server };
    return blocking(
      "API server",
      `${server} is the address of a Service, which only works while a proxy serves it`,
      "set the API server's own address: --api-server=https://HOST:6443",
    );
  });
}

const OWN_KIND = "FairleadConfiguration";

/** What of an installation is in its file. */
type OwnSettings = Pick<InstallationOptions, "excludeClusterCIDRs" | "mode">;

/**
 * kube-proxy's file as Fairlead's DaemonSet mounts it: the kubeconfig next to it, another mode where one is asked for,
 * other networks' CIDRs in the second document. All else, comments included, stays.
 */
function fairleadConfig(text: string, { excludeClusterCIDRs, mode }: OwnSettings): string {
  const documents = [...parseAllDocuments(text)];
  for (const { errors } of documents) if (errors[0] !== undefined) throw new Error(errorText(errors[0]));
  const isOwn = (document: (typeof documents)[number]) => document.get("kind") === OWN_KIND;
  for (const document of documents) {
    if (!isOwn(document)) {
      document.setIn(["clientConnection", "kubeconfig"], `${CONFIG_FOLDER}/kubeconfig.conf`);
      if (mode !== undefined) document.set("mode", mode);
    } else if (excludeClusterCIDRs.length > 0)
      document.setIn(["multiCNI", "excludeClusterCIDRs"], [...excludeClusterCIDRs]);
  }
  const texts = documents.map((document) => document.toString({ lineWidth: 0, directives: false }));
  if (!documents.some(isOwn) && excludeClusterCIDRs.length > 0) {
    const own = { apiVersion: "fairlead.dev/v1alpha1", kind: OWN_KIND, multiCNI: { excludeClusterCIDRs } };
    texts.push(stringify(own));
  }
  return texts.join("---\n");
}

/** The path of the kubeconfig that kube-proxy's file names; undefined: it names none. */
function kubeconfigPathIn(text: string): string | undefined {
  const paths = [...parseAllDocuments(text)].map((document) => document.getIn(["clientConnection", "kubeconfig"]));
  return paths.find((path) => typeof path === "string" && path !== "") as string | undefined;
}

function serversOf(kubeconfig: string): readonly string[] {
  return clustersOf(parseAllDocuments(kubeconfig)[0]?.toJS()).map(({ server }) => server);
}

function withServer(kubeconfig: string, server: string): string {
  const [document] = parseAllDocuments(kubeconfig);
  if (document === undefined) return kubeconfig;
  for (const [at] of clustersOf(document.toJS()).entries())
    document.setIn(["clusters", at, "cluster", "server"], server);
  return document.toString({ lineWidth: 0 });
}

function clustersOf(value: unknown): readonly { readonly server: string }[] {
  const { clusters } = (value ?? {}) as { clusters?: readonly { cluster?: { server?: string } }[] };
  return (Array.isArray(clusters) ? clusters : []).map(({ cluster }) => ({ server: String(cluster?.server ?? "") }));
}

function textsOf(value: unknown): readonly string[] {
  return itemsOf(value).flatMap((one) => (typeof one === "string" ? [one] : []));
}

/** `--flag value` as `--flag=value`, of the flags that are looked for. */
function joined(flags: readonly string[]): readonly string[] {
  return flags.flatMap((flag, at) => {
    if (/^--(?:config|hostname-override)$/.test(flags[at - 1] ?? "")) return [];
    return /^--(?:config|hostname-override)$/.test(flag) ? [`${flag}=${flags[at + 1] ?? ""}`] : [flag];
  });
}

function mountsOf(container: RawObject, pod: RawObject): KubeProxySetup["mounts"] {
  const volumes = itemsOf(pod["volumes"]).map(fieldsOf);
  return itemsOf(container["volumeMounts"])
    .map(fieldsOf)
    .flatMap(({ mountPath, name: wanted }) => {
      const volume = volumes.find(({ name }) => name === wanted);
      const configMap = stringOf(fieldsOf(volume?.["configMap"])["name"]);
      const folder = stringOf(mountPath)?.replace(/(?<=.)\/+$/, "");
      return folder === undefined || configMap === undefined ? [] : [{ folder, configMap }];
    });
}

/** Undefined: it is in no ConfigMap. */
function mountedFile(path: string, mounts: KubeProxySetup["mounts"]): MountedFile | undefined {
  const mount = mounts.find(({ folder }) => folder === posix.dirname(path));
  return mount && { path, ...mount, key: posix.basename(path) };
}

/**
 * The pod networks that a cluster has in addition to kube-proxy's clusterCIDR.
 *
 * @param objects of each resource, by `plural.group`
 */
function networkFindings(
  objects: ReadonlyMap<string, readonly unknown[]>,
  clusterCIDRs: readonly string[],
  excluded: readonly string[],
): readonly Finding[] {
  return NETWORK_SOURCES.flatMap((name) => {
    const cidrs = cidrsOf(networkSource(name), ({ plural, group }) => objects.get(`${plural}.${group}`) ?? []);
    return cidrs.length === 0 ? [] : [networkFinding(name, cidrs, clusterCIDRs, excluded)];
  });
}

function networkFinding(
  name: string,
  cidrs: readonly string[],
  clusterCIDRs: readonly string[],
  excluded: readonly string[],
): Finding {
  const left = cidrs.filter((cidr) => !isWithin(cidr, [...clusterCIDRs, ...excluded]));
  const found = `${name}: ${cidrs.join(", ")}`;
  if (left.length === 0) return { topic: "networks", state: "fits", found };
  return {
    topic: "networks",
    state: "differs",
    found: `${found}; not in clusterCIDR: ${left.join(", ")}`,
    advice: `if that network serves its own services, set --exclude-cluster-cidr=${left.join(",")}; without it Fairlead serves them, as kube-proxy does`,
  };
}

/** A text that is not a CIDR is within no CIDR. */
function isWithin(cidr: string, all: readonly string[]): boolean {
  const inner = parseCIDRLeniently(cidr);
  return inner !== undefined && all.some((outer) => containsCIDR(outer, inner.text));
}

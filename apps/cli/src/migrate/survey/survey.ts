import { errorText, fieldsOf, itemsOf, stringOf } from "@fairlead/base";
import { type AgentConfig, formatError, type ParseResult, parseArguments } from "@fairlead/config";
import { CONFIG_FOLDER } from "../manifests/containers.ts";
import type { Installation, InstallationOptions } from "../manifests/objects.ts";
import { fairleadConfig, kubeconfigPathIn, serversOf, withServer } from "./files.ts";
import type { SurveyFinding } from "./finding.ts";
import { type KubeProxySetup, kubeProxySetup, type MountedFile, mountedFile } from "./kube-proxy.ts";
import { networkFindings } from "./networks.ts";

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

export interface SurveyOptions extends InstallationOptions {
  /** Fairlead's own. */
  readonly version: string;
}

export interface Survey {
  readonly findings: readonly SurveyFinding[];
  /** What would be installed; absent: something blocks it. */
  readonly installation?: Installation;
  /** As Fairlead reads what it would be given. */
  readonly config?: AgentConfig;
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

const MANUAL = "install Fairlead by hand (docs/migrate-from-kube-proxy.md)";

function blocking(topic: string, found: string, advice?: string): SurveyFinding {
  return { topic, state: "blocks", found, ...(advice === undefined ? {} : { advice }) };
}

/** A text says why they are not to be had. */
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

function textIn({ configMap, key }: MountedFile, configMaps: SurveyObjects["configMaps"]): string | undefined {
  return stringOf(fieldsOf(fieldsOf(configMaps.get(configMap))["data"])[key]);
}

/** What the agent makes of what it would be given, on a node of any name. */
function parsedConfig({ flags, files }: Installation, version: string): ParseResult {
  const argv = [`--config=${CONFIG_FOLDER}/config.conf`, "--hostname-override=node", ...flags];
  return parseArguments(argv, { readFile: () => files["config.conf"], version });
}

function configFindings(parsed: ParseResult): readonly SurveyFinding[] {
  if (parsed.kind === "usage-error") return [blocking("flags", parsed.message.split("\n", 1)[0] ?? "")];
  if (parsed.kind !== "run" && parsed.kind !== "invalid") return [blocking("flags", "one of them ends the agent")];
  const warnings = parsed.warnings.map((found) => ({ topic: "configuration", state: "differs", found }) as const);
  if (parsed.kind === "invalid")
    return [...parsed.errors.map((error) => blocking("configuration", formatError(error))), ...warnings];
  const { mode, clusterCIDRs } = parsed.config;
  const cidrs = clusterCIDRs.length === 0 ? "no clusterCIDR" : `clusterCIDR ${clusterCIDRs.join(", ")}`;
  return [{ topic: "configuration", state: "fits", found: `mode ${mode}, ${cidrs}` }, ...warnings];
}

function serverFindings(kubeconfig: string, apiService: unknown): readonly SurveyFinding[] {
  const spec = fieldsOf(fieldsOf(apiService)["spec"]);
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

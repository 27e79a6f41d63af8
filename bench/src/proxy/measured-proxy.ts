import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Argv, createRunner } from "@fairlead/kernel";
import { settleAgent } from "@fairlead/lab/agent";
import { kubeProxyProgram } from "@fairlead/lab/control-plane/programs";
import { AGENT_NODE_OPTIONS } from "@fairlead/tooling/agent-node";
import { NODE_NAME } from "../cluster/objects.ts";

export type ProxyName = "fairlead" | "kube-proxy";

interface ProxyFiles {
  readonly configFile: string;
  /** For what it keeps from one start to the next. */
  readonly stateFolder: string;
  /** The agent's bundle. */
  readonly agent: string;
}

/** A program under measurement. Both read the same KubeProxyConfiguration. */
export interface MeasuredProxy {
  readonly name: ProxyName;
  argv(files: ProxyFiles): Argv;
  /** Matches the log line that ends a sync of IPv4, its time in the first group. */
  readonly synced: RegExp;
}

/** klog's `I1121 10:09:13.123456`. */
const KLOG_TIME = String.raw`^I(\d{4} \d\d:\d\d:\d\d\.\d{6}) `;

export function fairlead(): MeasuredProxy {
  return {
    name: "fairlead",
    argv: ({ configFile, stateFolder, agent }) => [
      process.execPath,
      ...AGENT_NODE_OPTIONS,
      agent,
      `--config=${configFile}`,
      `--hostname-override=${NODE_NAME}`,
      `--state-dir=${stateFolder}`,
      "-v=2",
    ],
    synced: new RegExp(`${KLOG_TIME}.*"(?:Rules are in place|Synced)" ipFamily="IPv4"`),
  };
}

/** Fairlead, and what it is compared with. */
export async function measuredProxies(
  { against, kubeProxyVersion }: { readonly against?: "kube-proxy"; readonly kubeProxyVersion: string },
  progress: (line: string) => void,
): Promise<readonly [MeasuredProxy, ...MeasuredProxy[]]> {
  if (against === undefined) return [fairlead()];
  return [fairlead(), kubeProxy(await kubeProxyProgram(kubeProxyVersion, progress))];
}

/**
 * Writes the configuration of both. `minSyncPeriod` is by default as short as can be: what is measured is the work, and
 * not the wait for the next second.
 */
export async function writeConfig(
  folder: string,
  mode: string,
  kubeconfig: string,
  minSyncPeriod = "10ms",
): Promise<string> {
  const file = join(folder, "config.json");
  const config = {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode,
    clusterCIDR: "10.144.0.0/12",
    clientConnection: { kubeconfig },
    iptables: { minSyncPeriod },
    nftables: { minSyncPeriod },
    // The machine's, not the namespace's.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: "0s", tcpCloseWaitTimeout: "0s" },
  };
  await writeFile(file, JSON.stringify(config));
  return file;
}

export interface SettledAgent {
  readonly bundle: string;
  /** What V8 has compiled of it, for NODE_COMPILE_CACHE. */
  readonly compiled: string;
}

/**
 * Copies the built agent, so that a build meanwhile neither changes what is measured nor ends it: native code that is
 * written over while it is mapped takes its process down. Compiled as it is when the image is built.
 */
export async function settledAgent(folder: string): Promise<SettledAgent> {
  const bundle = await settleAgent(join(folder, "agent"));
  const compiled = join(folder, "compiled");
  const runner = createRunner({ env: { NODE_OPTIONS: "", NODE_COMPILE_CACHE: compiled } });
  await runner.run([process.execPath, ...AGENT_NODE_OPTIONS, bundle, "--version"]);
  return { bundle, compiled };
}

/** Which kernel API the iptables tools of a run speak to. */
export type Variant = "nft" | "legacy";

const SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin";

/** The PATH of a folder in which plain `iptables` is of this variant. */
export async function toolPath(folder: string, variant: Variant): Promise<string> {
  await mkdir(folder, { recursive: true });
  await Promise.all(
    [...iptablesTools(variant)].map(([name, program]) => symlink(`/usr/sbin/${program}`, join(folder, name))),
  );
  return `${folder}:${SYSTEM_PATH}`;
}

function kubeProxy(program: string): MeasuredProxy {
  return {
    name: "kube-proxy",
    argv: ({ configFile }) => [program, `--config=${configFile}`, `--hostname-override=${NODE_NAME}`, "--v=2"],
    synced: new RegExp(`${KLOG_TIME}.*"SyncProxyRules complete".* ipFamily="IPv4"`, "i"),
  };
}

/** By the name that it is called by. */
function iptablesTools(variant: Variant): ReadonlyMap<string, string> {
  const verbs = ["", "-save", "-restore"];
  return new Map(
    ["iptables", "ip6tables"].flatMap((family) =>
      verbs.flatMap((verb) => [
        [`${family}${verb}`, `${family}-${variant}${verb}`] as const,
        [`${family}-${variant}${verb}`, `${family}-${variant}${verb}`] as const,
      ]),
    ),
  );
}

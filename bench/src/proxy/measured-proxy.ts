import { readFile, writeFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Argv } from "@fairlead/kernel";
import { kubeProxyProgram } from "@fairlead/lab/control-plane/programs";
import { AGENT_NODE_OPTIONS } from "@fairlead/tooling/agent-node";
import { NODE_NAME } from "../cluster/objects.ts";
import type { LoopFigures } from "./loop-probe.ts";

export type ProxyName = "fairlead" | "kube-proxy";

/** What a program is started with. */
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

/**
 * What the agent's Node is given so that it tells how long its event loop was held, in a file at its end.
 *
 * @param file in a folder that is there; the probe goes alongside it, as JavaScript: with Node's own stripping of types
 *   the agent would take 15 MB more
 */
export async function loopProbe(file: string): Promise<readonly string[]> {
  const source = await readFile(new URL("loop-probe.ts", import.meta.url), "utf8");
  await writeFile(`${file}.mjs`, stripTypeScriptTypes(source));
  const probe = pathToFileURL(`${file}.mjs`);
  probe.searchParams.set("out", file);
  return ["--import", probe.href];
}

/** What the probe left; undefined: there was none. */
export async function loopFigures(file: string): Promise<LoopFigures | undefined> {
  const text = await readFile(file, "utf8").catch(() => undefined);
  return text === undefined ? undefined : JSON.parse(text);
}

/** @param nodeOptions for the agent's Node, alongside what the image gives it */
export function fairlead(nodeOptions: readonly string[] = []): MeasuredProxy {
  return {
    name: "fairlead",
    argv: ({ configFile, stateFolder, agent }) => [
      process.execPath,
      ...AGENT_NODE_OPTIONS,
      ...nodeOptions,
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

function kubeProxy(program: string): MeasuredProxy {
  return {
    name: "kube-proxy",
    argv: ({ configFile }) => [program, `--config=${configFile}`, `--hostname-override=${NODE_NAME}`, "--v=2"],
    synced: new RegExp(`${KLOG_TIME}.*"SyncProxyRules complete".* ipFamily="IPv4"`, "i"),
  };
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

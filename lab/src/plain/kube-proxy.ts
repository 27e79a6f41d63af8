/** The real kube-proxy on the first node, and the light API server that it follows. */

import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { NETWORKS, type RawObject } from "@fairlead/testkit";
import { PLAIN_TOOL } from "../support/machine.ts";
import { type Daemon, startDaemon } from "../support/processes.ts";
import { FROM_SOURCES, startScript } from "../support/script.ts";
import type { Lab } from "./lab.ts";

/** How the real kube-proxy is run; its iptables are those that the plain names lead to. */
export interface KubeProxyMode {
  readonly mode: "iptables" | "nftables";
  readonly variant: "nft" | "legacy";
}

export interface KubeProxy extends Daemon {
  log(): Promise<string>;
}

interface KubeProxySettings extends KubeProxyMode {
  readonly program: string;
  readonly kubeconfig: string;
  /** For its configuration and its log. */
  readonly folder: string;
}

export async function startKubeProxy(lab: Pick<Lab, "namespace">, settings: KubeProxySettings): Promise<KubeProxy> {
  const { program, folder, mode, variant, kubeconfig } = settings;
  await mkdir(folder, { recursive: true });
  const { PATH = "" } = process.env;
  const path = variant === "legacy" ? `${await legacyTools(folder)}:${PATH}` : PATH;
  return runKubeProxy(lab.namespace("node-a"), {
    program,
    folder,
    nodeName: "node-a",
    configuration: configuration(mode, kubeconfig),
    env: { PATH: path },
  });
}

interface KubeProxyRun {
  readonly program: string;
  /** For its configuration and its log. */
  readonly folder: string;
  readonly nodeName: string;
  readonly configuration: object;
  readonly env?: Readonly<Record<string, string>>;
}

export async function runKubeProxy(namespace: NetworkNamespace, run: KubeProxyRun): Promise<KubeProxy> {
  const { program, folder, nodeName, env = {} } = run;
  await mkdir(folder, { recursive: true });
  const config = join(folder, "config.conf");
  const logFile = join(folder, "log");
  await writeFile(config, JSON.stringify(run.configuration));
  const argv = [program, `--config=${config}`, `--hostname-override=${nodeName}`, "--v=2"] as const;
  const daemon = await startDaemon(namespace, { name: "kube-proxy", argv, logFile, env });
  return { ...daemon, log: () => readFile(logFile, "utf8") };
}

export interface NamespaceApi {
  readonly url: string;
  put(objects: readonly RawObject[]): Promise<void>;
  stop(): Promise<void>;
}

const SCRIPT = fileURLToPath(new URL("./api-main.ts", import.meta.url));

export async function startApi(namespace: NetworkNamespace, objects: readonly RawObject[]): Promise<NamespaceApi> {
  const script = await startScript(namespace, SCRIPT, [], FROM_SOURCES);
  const put = async (more: readonly RawObject[]) => void (await script.ask(JSON.stringify(more)));
  await put(objects);
  return { url: script.ready, put, stop: script.stop };
}

function configuration(mode: string, kubeconfig: string) {
  return {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode,
    clusterCIDR: `${NETWORKS.calico.IPv4},${NETWORKS.calico.IPv6}`,
    clientConnection: { kubeconfig, contentType: "application/json" },
    // A test does not change the limits of the machine.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: "0s", tcpCloseWaitTimeout: "0s" },
    nodePortAddresses: [],
  };
}

/** A folder in which the plain names are the legacy variant. */
async function legacyTools(folder: string): Promise<string> {
  const tools = join(folder, "legacy");
  await mkdir(tools, { recursive: true });
  for (const tool of Object.values(PLAIN_TOOL)) {
    for (const end of ["", "-save", "-restore"]) {
      await symlink("/usr/sbin/xtables-legacy-multi", join(tools, `${tool}${end}`)).catch(ignoreExisting);
    }
  }
  return tools;
}

function ignoreExisting(error: NodeJS.ErrnoException): void {
  if (error.code !== "EEXIST") throw error;
}

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
  readonly mode: "iptables" | "ipvs" | "nftables";
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

/** Starts kube-proxy on node-a of a lab. */
export async function startKubeProxy(lab: Pick<Lab, "namespace">, settings: KubeProxySettings): Promise<KubeProxy> {
  const { program, folder, mode, variant } = settings;
  await mkdir(folder, { recursive: true });
  const config = join(folder, "config.conf");
  const logFile = join(folder, "log");
  await writeFile(config, JSON.stringify(configuration(mode, settings.kubeconfig)));
  const { PATH = "" } = process.env;
  const path = variant === "legacy" ? `${await legacyTools(folder)}:${PATH}` : PATH;
  const argv = [program, `--config=${config}`, "--hostname-override=node-a", "--v=2"] as const;
  const daemon = await startDaemon(lab.namespace("node-a"), { name: "kube-proxy", argv, logFile, env: { PATH: path } });
  return { ...daemon, log: () => readFile(logFile, "utf8") };
}

/** An API server for the proxies of one namespace. */
export interface NamespaceApi {
  readonly url: string;
  put(objects: readonly RawObject[]): Promise<void>;
  remove(objects: readonly RawObject[]): Promise<void>;
  stop(): Promise<void>;
}

/** A line that `api-main.ts` takes. */
export interface ApiChanges {
  readonly put?: readonly RawObject[];
  readonly remove?: readonly RawObject[];
}

const SCRIPT = fileURLToPath(new URL("./api-main.ts", import.meta.url));

/** Starts it with these objects. */
export async function startApi(namespace: NetworkNamespace, objects: readonly RawObject[]): Promise<NamespaceApi> {
  const script = await startScript(namespace, SCRIPT, [], FROM_SOURCES);
  const change = async (changes: ApiChanges) => void (await script.ask(JSON.stringify(changes)));
  const put = (more: readonly RawObject[]) => change({ put: more });
  await put(objects);
  return { url: script.ready, put, remove: (gone) => change({ remove: gone }), stop: script.stop };
}

function configuration(mode: string, kubeconfig: string) {
  return {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode,
    clusterCIDR: `${NETWORKS.calico.IPv4},${NETWORKS.calico.IPv6}`,
    clientConnection: { kubeconfig, contentType: "application/json" },
    // The limits of the machine are none of a test's business.
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

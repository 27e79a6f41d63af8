/** Agents on the first node, which follow a folder of manifests, and what they serve. */

import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { IPFamily } from "@fairlead/core";
import type { Variant } from "@fairlead/kernel";
import {
  clusterObjects,
  endpointSlice,
  NETWORKS,
  nginxCalico,
  type RawObject,
  service,
  type Workload,
  webA1,
  webB1,
  workload,
} from "@fairlead/testkit";
import { type AgentFolder, type AgentProcess, type AgentSettings, agentFolder, startAgent } from "../agent.ts";
import { kubeconfig, USERS } from "../control-plane/control-plane.ts";
import { PLAIN_TOOL } from "../support/machine.ts";
import { START_MS, waitUntil } from "../support/wait-until.ts";
import { type KubeProxyMode, startApi, startKubeProxy } from "./kube-proxy.ts";
import type { Lab } from "./lab.ts";

/** What the fault tests run the agent with, alongside the paths; times are short so that the tests are. */
const SYNC_PERIOD_MS = 1_000;
export const SCENE_FLAGS: readonly string[] = [
  "--proxy-mode=iptables",
  `--cluster-cidr=${NETWORKS.calico.IPv4},${NETWORKS.calico.IPv6}`,
  `--exclude-cluster-cidr=${NETWORKS.ovn.IPv4},${NETWORKS.ovn.IPv6}`,
  "--hostname-override=node-a",
  "-v=2",
  `--iptables-sync-period=${SYNC_PERIOD_MS}ms`,
  "--iptables-min-sync-period=0s",
];

export interface Scene {
  readonly folder: AgentFolder;
  /** The agent that runs now, or ran last. */
  agent(): AgentProcess;
  /** Starts another one in the same folder. */
  start(settings?: Partial<AgentSettings>): AgentProcess;
  /** Starts one and waits until its rules are there. */
  restart(settings?: Partial<AgentSettings>): Promise<AgentProcess>;
  /** Ends the agents, removes what they programmed, and the folder. */
  close(): Promise<void>;
}

/** Starts an agent and waits until its rules are in place in both families. */
export async function openScene(
  lab: Lab,
  objects: readonly RawObject[],
  settings: Partial<AgentSettings> = {},
): Promise<Scene> {
  const folder = await agentFolder(objects);
  const started: AgentProcess[] = [];
  const start = ({ flags = [], env = {} }: Partial<AgentSettings> = {}) => {
    const paths = [`--manifests=${folder.manifests}`, `--state-dir=${folder.state}`];
    const agent = startAgent(lab.namespace("node-a"), { flags: [...SCENE_FLAGS, ...paths, ...flags], env });
    started.push(agent);
    return agent;
  };
  const scene: Scene = {
    folder,
    agent: () => started.at(-1) ?? start(settings),
    start,
    restart: async (more = settings) => {
      const agent = start(more);
      await rulesInPlace(agent);
      return agent;
    },
    close: async () => {
      await Promise.all(started.map((agent) => agent.kill()));
      await start({ flags: ["--cleanup"] }).ended;
      await folder.remove();
    },
  };
  try {
    await scene.restart();
    return scene;
  } catch (error) {
    await scene.close();
    throw error;
  }
}

export async function rulesInPlace(agent: AgentProcess): Promise<void> {
  let ended = false;
  void agent.ended.then(() => {
    ended = true;
  });
  try {
    await waitUntil("the agent's first sync", START_MS, async () => {
      if (ended) throw new Error("the agent ended");
      return ["IPv4", "IPv6"].every((family) => syncs(agent, family) > 0) ? true : undefined;
    });
  } catch (error) {
    throw new Error(`no rules; the agent's log:\n${agent.log()}`, { cause: error });
  }
}

/** A proxy on node-a of a lab, and its end. */
interface PairedProxy {
  /** Starts it; of Fairlead the rules are in place then. */
  start(): Promise<void>;
  /** Ends it, if it runs, and runs its `--cleanup`. */
  remove(): Promise<void>;
}

/** Two proxies on one node that follow one API server. */
export interface Pair {
  readonly first: PairedProxy;
  /** Fairlead in nftables mode with the service proxy name `NAME`. */
  readonly named: PairedProxy;
  put(objects: readonly RawObject[]): Promise<void>;
  close(): Promise<void>;
}

export interface FirstProxy {
  readonly mode: KubeProxyMode["mode"];
  /** Path of kube-proxy's program; absent: Fairlead. */
  readonly kubeProxy?: string;
}

const NAME = "edge";

const LABEL = "service.kubernetes.io/service-proxy-name";

export function labeled(objects: readonly RawObject[], name = NAME): readonly RawObject[] {
  return objects.map((object) => {
    if (object.kind !== "Service") return object;
    const { metadata } = object;
    return { ...object, metadata: { ...metadata, labels: { ...metadata.labels, [LABEL]: name } } };
  });
}

/** Both are started, the first one first. */
export async function openPair(lab: Lab, first: FirstProxy, objects: readonly RawObject[]): Promise<Pair> {
  const opened = new AsyncDisposableStack();
  try {
    const folder = await agentFolder([]);
    opened.defer(() => rm(folder.path, { recursive: true }));
    const api = await startApi(lab.namespace("node-a"), objects);
    opened.defer(() => api.stop());
    const config = join(folder.path, "kubeconfig");
    await writeFile(config, kubeconfig({ server: api.url, token: USERS.proxy.token }));
    // The named one's state is below the same folder.
    const flags = [...SCENE_FLAGS, `--kubeconfig=${config}`, `--state-dir=${folder.state}`];
    const { mode, kubeProxy } = first;
    const pair = {
      first:
        kubeProxy === undefined
          ? fairlead(lab, [...flags, `--proxy-mode=${mode}`])
          : realKubeProxy(lab, { mode, program: kubeProxy, kubeconfig: config, folder: join(folder.path, "first") }),
      named: fairlead(lab, [...flags, "--proxy-mode=nftables", `--service-proxy-name=${NAME}`]),
    };
    for (const proxy of [pair.first, pair.named]) {
      opened.defer(() => proxy.remove());
      await proxy.start();
    }
    const kept = opened.move();
    return { ...pair, put: api.put, close: () => kept.disposeAsync() };
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

/** Served in both families, at every kind of frontend. */
export const web: Workload = workload(11, {
  endpoints: [webA1, webB1],
  families: ["IPv4", "IPv6"],
  loadBalancer: "VIP",
  sourceRanges: [NETWORKS.outside.IPv4, NETWORKS.outside.IPv6],
});

export const noEndpoints: Workload = workload(12, { endpoints: [], families: ["IPv4", "IPv6"] });

/** Comes and goes. */
export const late: Workload = workload(13, { endpoints: [webA1] });

export const NGINX_CALICO_IP = "10.96.67.75";
export const NGINX_OVN_IP = "10.96.95.98";

/** The founding case: one service of each network. */
const founding: readonly RawObject[] = [
  ...one("nginx-calico", NGINX_CALICO_IP, nginxCalico.addresses.IPv4),
  ...one("nginx-ovn", NGINX_OVN_IP, "10.244.1.5"),
];

/** What the agents of the fault tests serve. */
export const objects: readonly RawObject[] = [...clusterObjects, ...web.objects, ...noEndpoints.objects, ...founding];

/** What listens in a lab with these objects. */
export const labPorts = {
  podPorts: { tcp: [80, 8080], udp: [] },
  landingPorts: { tcp: [80, 8080, web.nodePort], udp: [] },
};

/**
 * node-a's chains and rules of both families without counters, `IPv4 nat -A KUBE-SERVICES …`, sorted: chains have no
 * order, that of dispatch rules and of jumps alongside those of others means nothing, and for the rest packets are the
 * test.
 */
export async function rulesOf(lab: Lab, variant: Variant = "nft"): Promise<readonly string[]> {
  const families: readonly IPFamily[] = ["IPv4", "IPv6"];
  const saved = await Promise.all(families.map((family) => savedRules(lab, family, variant)));
  return saved.flat().sort();
}

function syncs(agent: AgentProcess, family: string): number {
  const lines = agent.log().split("\n");
  return lines.filter((line) => line.includes('"Rules are in place"') && line.includes(`ipFamily="${family}"`)).length;
}

function fairlead(lab: Lab, flags: readonly string[]): PairedProxy {
  const node = lab.namespace("node-a");
  let agent: AgentProcess | undefined;
  return {
    start: async () => {
      agent = startAgent(node, { flags });
      await rulesInPlace(agent);
    },
    remove: async () => {
      await agent?.stop();
      const { exitCode, log } = await startAgent(node, { flags: [...flags, "--cleanup"] }).ended;
      if (exitCode !== 0) throw new Error(`--cleanup ended with ${exitCode}:\n${log}`);
    },
  };
}

type KubeProxySettings = Parameters<typeof startKubeProxy>[1];

function realKubeProxy(lab: Lab, settings: Omit<KubeProxySettings, "variant">): PairedProxy {
  let stop = async () => {};
  return {
    start: async () => {
      stop = (await startKubeProxy(lab, { ...settings, variant: "nft" })).stop;
    },
    remove: async () => {
      await stop();
      await lab.runner("node-a").run([settings.program, "--cleanup"]);
    },
  };
}

function one(name: string, clusterIP: string, address: string): readonly RawObject[] {
  return [
    service(name, { clusterIPs: [clusterIP], ports: [{ port: 80 }] }),
    endpointSlice(`${name}-1`, {
      service: name,
      family: "IPv4",
      ports: [{ port: 80 }],
      endpoints: [{ address, nodeName: "node-b" }],
    }),
  ];
}

async function savedRules(lab: Lab, family: IPFamily, variant: Variant): Promise<readonly string[]> {
  const { stdout } = await lab.runner("node-a").run([`${PLAIN_TOOL[family]}-${variant}-save`]);
  return stdout.split("\n*").flatMap((section) => {
    const [head = "", ...lines] = section.split("\n");
    const table = head.trim();
    const rules = lines.filter((line) => line.startsWith(":") || line.startsWith("-A "));
    return rules.map((line) => `${family} ${table} ${line.replace(/ \[\d+:\d+\]$/, "")}`);
  });
}

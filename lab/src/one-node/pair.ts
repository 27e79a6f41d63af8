import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { RawObject } from "@fairlead/testkit";
import { type AgentProcess, startAgent } from "../agent/agent-process.ts";
import { agentFolder } from "../agent/manifests.ts";
import { kubeconfig, USERS } from "../control-plane/users.ts";
import type { Lab } from "../two-nodes/lab.ts";
import { startApi } from "./api.ts";
import { type KubeProxyMode, startKubeProxy } from "./kube-proxy.ts";
import { rulesInPlace, SCENE_FLAGS } from "./scene.ts";

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

/** The same objects, with the label on the Services. */
export function labeled(objects: readonly RawObject[], name = NAME): readonly RawObject[] {
  return objects.map((object) => {
    if (object.kind !== "Service") return object;
    const { metadata } = object;
    return { ...object, metadata: { ...metadata, labels: { ...metadata.labels, [LABEL]: name } } };
  });
}

/** Both are started, the first one first. @throws Error with the log of one that writes no rules */
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

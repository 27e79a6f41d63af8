/** In the guest: answers the calls. */

import type { Script } from "../../support/script.ts";
import type { Cluster, ClusterNode, Pod, Removable } from "../cluster.ts";
import type { GuestCalls } from "./wire.ts";

/** Answers for a cluster of this process. */
export function clusterCalls(opening: Promise<Cluster>): GuestCalls {
  const pods = new Map<string, Pod>();
  const node = async (name: string) => found(name, (await opening).nodes);
  const pod = async (name: string) => found(name, [...pods.values()]);
  const client = async (name: string) => {
    const { outside, nodes } = await opening;
    return found(name, [outside, ...nodes, ...pods.values()]);
  };
  return {
    open: async () => {
      const { nodes, outside } = await opening;
      return {
        nodes: nodes.map(({ name, zone, addresses }) => ({ name, zone, addresses })),
        outside: outside.addresses,
      };
    },
    send: async (name, probe) => (await client(name)).send(probe),
    run: async (name, argv) => (await node(name)).run(argv),
    agent: async (name, action) => act((await node(name)).agent, action),
    restartAgent: async (name, how) => (await node(name)).agent.restart(how),
    swapAgent: async (name, proxy) => (await node(name)).agent.swap?.(proxy),
    ...startedCalls(node, pod),
    agentGet: async (name, path) => (await node(name)).agent.get(path),
    agentStatus: async (name, family, port) => (await node(name)).agent.status(family, port),
    agentLog: async (name) => (await node(name)).agent.log(),
    startPod: async (wanted) => {
      const started = await (await opening).startPod({ ...wanted, node: await node(wanted.node) });
      pods.set(started.name, started);
      return { name: started.name, addresses: started.addresses };
    },
    pod: async (name, action) => {
      await (await pod(name))[action]();
      if (action === "remove") pods.delete(name);
    },
    setPodReady: async (name, ready) => (await pod(name)).setReady(ready),
    setPodLabels: async (name, labels) => (await pod(name)).setLabels(labels),
    state: async () => (await opening).state(),
    dispose: async () => (await opening).dispose(),
  };
}

type Calls = "startLocalInstance" | "removeLocalInstance" | "startPodScript" | "askScript" | "stopScript";

/** What is started alongside agents and pods, and goes by a name from then on. */
export function startedCalls(
  node: (name: string) => Promise<Pick<ClusterNode, "startLocalInstance">>,
  pod: (name: string) => Promise<Pick<Pod, "startScript">>,
): Pick<GuestCalls, Calls> {
  const instances = new Map<string, Removable>();
  const scripts = new Map<string, Script>();
  return {
    startLocalInstance: async (at, name) => {
      const start = possible((await node(at)).startLocalInstance);
      instances.set(`${at}/${name}`, await start(name));
    },
    removeLocalInstance: (at, name) => known(instances.get(`${at}/${name}`)).remove(),
    startPodScript: async (at, file, args) => {
      const script = await possible((await pod(at)).startScript)(file, args);
      const name = `${at} ${scripts.size}`;
      scripts.set(name, script);
      return { name, ready: script.ready };
    },
    askScript: (name, line) => known(scripts.get(name)).ask(line),
    stopScript: (name) => known(scripts.get(name)).stop(),
  };
}

function act({ kill, signal }: ClusterNode["agent"], action: Parameters<GuestCalls["agent"]>[1]): Promise<void> {
  return action === "kill" ? kill() : signal(action);
}

function found<T extends { readonly name: string }>(name: string, things: readonly T[]): T {
  const thing = things.find((one) => one.name === name);
  if (thing === undefined) throw new Error(`there is no ${name} in this cluster`);
  return thing;
}

function possible<T>(method: T | undefined): T {
  if (method === undefined) throw new Error("this cluster cannot start it");
  return method;
}

function known<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("nobody has started it");
  return value;
}

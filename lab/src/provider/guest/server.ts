import type { Cluster, Pod } from "../cluster.ts";
import type { ClusterNode } from "../node.ts";
import type { GuestCalls } from "./calls.ts";
import { startedCalls } from "./started.ts";

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

function act({ kill, signal }: ClusterNode["agent"], action: Parameters<GuestCalls["agent"]>[1]): Promise<void> {
  return action === "kill" ? kill() : signal(action);
}

function found<T extends { readonly name: string }>(name: string, things: readonly T[]): T {
  const thing = things.find((one) => one.name === name);
  if (thing === undefined) throw new Error(`there is no ${name} in this cluster`);
  return thing;
}

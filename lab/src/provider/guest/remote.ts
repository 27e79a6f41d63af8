import type { ApiClient } from "../../control-plane/api-client.ts";
import type { Cluster, ClusterShape, Pod, WantedPod } from "../cluster.ts";
import { familiesOnly, gateAddress, gateCounter, STRANGER_ADDRESS } from "../netns/addresses.ts";
import type { ClusterNode } from "../node.ts";
import type { OpenedCluster } from "./calls.ts";
import type { Ask } from "./wire.ts";

export interface RemoteParts {
  readonly shape: ClusterShape;
  readonly opened: OpenedCluster;
  readonly ask: Ask;
  readonly api: ApiClient;
  readonly apiServer: Cluster["apiServer"];
  /** Ends the guest as well. */
  readonly dispose: () => Promise<void>;
}

/** A cluster in the guest as specs work with it. */
export function remoteCluster({ shape, opened, ask, api, apiServer, dispose }: RemoteParts): Cluster {
  const nodes = opened.nodes.map((node) => remoteNode(node, ask));
  const gates = gateCounter();
  return {
    ...shape,
    nodes,
    api,
    apiServer,
    outside: { name: "outside", addresses: opened.outside, send: (probe) => ask("send", "outside", probe) },
    strangerAddresses: familiesOnly(shape.families, STRANGER_ADDRESS),
    startPod: (wanted) => startPod(wanted, ask),
    gateAddress: (node, family) => gateAddress[family](shape.nodeNames.indexOf(node.name) + 1, gates()),
    // Its namespaces cannot be entered from here.
    tour: [],
    state: () => ask("state"),
    dispose,
  };
}

function remoteNode({ name, zone, addresses }: OpenedCluster["nodes"][number], ask: Ask): ClusterNode {
  return {
    name,
    zone,
    addresses,
    send: (probe) => ask("send", name, probe),
    run: (argv) => ask("run", name, argv),
    startLocalInstance: async (instance) => {
      await ask("startLocalInstance", name, instance);
      return { remove: () => ask("removeLocalInstance", name, instance) };
    },
    agent: {
      get: (path) => ask("agentGet", name, path),
      status: (family, port) => ask("agentStatus", name, family, port),
      log: () => ask("agentLog", name),
      kill: () => ask("agent", name, "kill"),
      restart: (how = {}) => ask("restartAgent", name, how),
      swap: (proxy) => ask("swapAgent", name, proxy),
      signal: (signal) => ask("agent", name, signal),
    },
  };
}

async function startPod(wanted: WantedPod, ask: Ask): Promise<Pod> {
  const { node, network, namespace } = wanted;
  const { name, addresses } = await ask("startPod", { ...wanted, node: node.name });
  let removed: Promise<void> | undefined;
  return {
    name,
    addresses,
    network,
    node,
    namespace,
    send: (probe) => ask("send", name, probe),
    setReady: (ready) => ask("setPodReady", name, ready),
    setLabels: (labels) => ask("setPodLabels", name, labels),
    startScript: async (file, args = []) => {
      const script = await ask("startPodScript", name, file, args);
      return {
        ready: script.ready,
        ask: (line) => ask("askScript", script.name, line),
        stop: () => ask("stopScript", script.name),
      };
    },
    terminate: () => ask("pod", name, "terminate"),
    remove: () => {
      removed ??= ask("pod", name, "remove");
      return removed;
    },
  };
}

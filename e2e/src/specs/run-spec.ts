import type { IPFamily } from "@fairlead/core";
import { objectPath } from "@fairlead/lab/control-plane/api-client";
import type { Cluster, NetworkShape } from "@fairlead/lab/provider/cluster";
import type { Scene } from "./scene.ts";
import { createService } from "./service.ts";
import type { Figures, Spec } from "./spec.ts";
import { until } from "./until.ts";

/**
 * Runs one spec in a Kubernetes namespace of its own.
 *
 * @param namespace unique in the cluster
 * @param before when it failed, is told of it while everything still stands
 * @returns the spec's figures
 * @throws what the spec threw
 */
export async function runSpec(
  spec: Spec,
  cluster: Cluster,
  family: IPFamily,
  namespace: string,
  before: (error: unknown) => Promise<void> = async () => {},
): Promise<Figures | undefined> {
  const undo = new AsyncDisposableStack();
  try {
    const figures = await spec.run(await openScene(cluster, family, namespace, undo), cluster);
    return figures ?? undefined;
  } catch (error) {
    await before(error);
    throw error;
  } finally {
    await undo.disposeAsync();
  }
}

async function openScene(
  cluster: Cluster,
  family: IPFamily,
  namespace: string,
  undo: AsyncDisposableStack,
): Promise<Scene> {
  const { api } = cluster;
  const own = { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } } as const;
  await api.create(own);
  undo.defer(() => api.delete(objectPath(own)));
  const network = cluster.networks.find(({ excluded }) => !excluded);
  const [first, second] = cluster.nodes;
  if (network === undefined || first === undefined || second === undefined) {
    throw new Error("a spec needs two nodes and a network that is not excluded");
  }
  return {
    cluster,
    family,
    namespace,
    nodes: [first, second],
    network,
    pod: (fields) => startPod(cluster, namespace, network, undo, fields),
    service: async (name, spec, annotations = {}) => {
      const service = await createService(api, { name, namespace, family, spec, annotations });
      undo.defer(service.remove);
      return service;
    },
    until,
    later: (undoIt) => undo.defer(undoIt),
  };
}

async function startPod(
  cluster: Cluster,
  namespace: string,
  network: NetworkShape,
  undo: AsyncDisposableStack,
  fields: Parameters<Scene["pod"]>[0],
) {
  const { app, node, network: wanted = network.name, ready = true } = fields;
  const labels = app === undefined ? {} : { app };
  const pod = await cluster.startPod({ namespace, node, network: wanted, ready, labels });
  undo.defer(() => pod.remove());
  return pod;
}

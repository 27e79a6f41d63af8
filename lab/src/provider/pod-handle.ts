import type { ApiClient, ApiObject } from "../control-plane/api-client.ts";
import type { Peer } from "../peer/process.ts";
import { orDispose } from "../support/processes.ts";
import type { Pod, WantedPod } from "./cluster.ts";

/** How long what is terminated goes on serving: longer than any spec. */
export const GRACE_SECONDS = 600;

interface PodParts {
  readonly name: string;
  readonly wanted: WantedPod;
  readonly addresses: Pod["addresses"];
  readonly api: ApiClient;
  /** Of its object in the API. */
  readonly path: string;
  readonly peer: Peer;
  setReady(ready: boolean): Promise<unknown>;
}

/** A pod that serves, before anybody has it. */
type OpenedPod = Omit<Pod, "remove">;

export function podHandle({ name, wanted, addresses, api, path, peer, setReady }: PodParts): OpenedPod {
  const { network, node, namespace } = wanted;
  return {
    ...{ name, addresses, network, node, namespace },
    send: (probe) => peer.send(probe),
    setReady: async (ready) => void (await setReady(ready)),
    setLabels: async (labels) => void (await api.patch(path, { metadata: { labels } })),
    terminate: () => api.delete(path, GRACE_SECONDS),
  };
}

/**
 * Starts pods, and removes at the end those that nobody has removed.
 *
 * @param open gives `undo` what is to be undone when the pod is removed, or does not come to serve
 */
export function podStarter(open: (wanted: WantedPod, undo: AsyncDisposableStack) => Promise<OpenedPod>) {
  const running = new Set<Pod>();
  const start = (wanted: WantedPod): Promise<Pod> =>
    orDispose(async (undo) => {
      const remove = async () => {
        running.delete(pod);
        await undo.disposeAsync();
      };
      const pod: Pod = { ...(await open(wanted, undo)), remove };
      running.add(pod);
      return pod;
    });
  const dispose = async () => {
    await Promise.all([...running].map((pod) => pod.remove()));
  };
  return { start, dispose };
}

/** A pod bound to its node; `spec` has its containers. */
export function podObject(
  name: string,
  { namespace, node, labels = {} }: WantedPod,
  spec: Readonly<Record<string, unknown>>,
): ApiObject {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace, labels },
    spec: { nodeName: node.name, enableServiceLinks: false, ...spec },
  };
}

import { familyOf } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import { waitUntil } from "../../agent/wait-until.ts";
import { type ApiClient, objectPath } from "../../control-plane/api-client.ts";
import { startPeer } from "../../peer/process.ts";
import { POD_PORTS, type WantedPod } from "../cluster.ts";
import { GRACE_SECONDS, podHandle, podStarter } from "../pod-handle.ts";
import { podObject } from "../pod-object.ts";
import { containerNetwork } from "./containers.ts";
import { PAUSE_IMAGE } from "./images/component-list.ts";

/** Says that a pod is ready, alongside the kubelet. */
const GATE = "fairlead.dev/ready";
const START_MS = 90_000;
const PAUSE_MS = 100;

/** What pods are made of. */
export interface PodGround {
  readonly api: ApiClient;
  readonly families: readonly IPFamily[];
  /** What a pod's object needs to come into a network. */
  inNetwork(network: string, pod: string): Readonly<Record<string, unknown>>;
}

/** Starts pods, and numbers them. */
export function numberedPods(ground: PodGround) {
  let count = 0;
  return podStarter((wanted, undo) => {
    count += 1;
    return openPod(ground, `${wanted.network}-${count}`, wanted, undo);
  });
}

/**
 * A pod whose container does nothing: what serves and sends in its network is a process of this machine. The kubelet
 * starts it, the network's plugin connects it, and a readiness gate of our own says whether it is ready.
 */
async function openPod(ground: PodGround, name: string, wanted: WantedPod, undo: AsyncDisposableStack) {
  const { api, families } = ground;
  const created = await api.create(podObject(name, wanted, { ...IDLE, ...ground.inNetwork(wanted.network, name) }));
  const path = objectPath({ apiVersion: "v1", kind: "Pod", metadata: created.metadata });
  undo.defer(() => api.delete(path));
  const addresses = await addressesOf(api, path, families);
  const { namespace } = await containerNetwork(`pod${String(created.metadata["uid"])}`);
  const peer = await startPeer(namespace, { name, listen: POD_PORTS });
  undo.defer(() => peer.stop());
  const setReady = (ready: boolean) => {
    const conditions = [{ type: GATE, status: ready ? "True" : "False" }];
    return api.patch(`${path}/status`, { status: { conditions } }, "strategic");
  };
  await setReady(wanted.ready ?? true);
  return podHandle({ name, wanted, addresses, api, path, peer, setReady });
}

/** A container that does nothing, and goes on serving while it is terminating. */
const IDLE = {
  automountServiceAccountToken: false,
  tolerations: [{ operator: "Exists" }],
  terminationGracePeriodSeconds: GRACE_SECONDS + 30,
  readinessGates: [{ conditionType: GATE }],
  containers: [{ name: "peer", image: PAUSE_IMAGE, lifecycle: { preStop: { sleep: { seconds: GRACE_SECONDS } } } }],
};

async function addressesOf(api: ApiClient, path: string, families: readonly IPFamily[]) {
  const started = async () => {
    const { status } = (await api.get(path)) as PodStatus;
    const running = status?.phase === "Running" && status.podIPs?.length === families.length;
    return running ? status.podIPs?.map(({ ip }) => ip) : undefined;
  };
  const ips = await waitUntil(`the start of ${path}`, START_MS, started, PAUSE_MS);
  return Object.fromEntries(families.map((family) => [family, ips.find((ip) => familyOf(ip) === family)]));
}

interface PodStatus {
  readonly status?: { readonly phase?: string; readonly podIPs?: readonly { readonly ip: string }[] };
}

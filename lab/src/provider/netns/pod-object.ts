import type { IPFamily } from "@fairlead/core";
import type { ApiObject } from "../../control-plane/api-client.ts";

type Addresses = Readonly<Partial<Record<IPFamily, string>>>;

/** What a kubelet would say of it: running, with these addresses, ready or not. */
export function podStatus(pod: Addresses, node: Addresses, ready: boolean): unknown {
  const conditions = ["Ready", "ContainersReady"].map((type) => condition(type, ready));
  return {
    status: {
      phase: "Running",
      conditions: [...conditions, condition("PodScheduled", true), condition("Initialized", true)],
      podIP: Object.values(pod)[0],
      podIPs: Object.values(pod).map((ip) => ({ ip })),
      hostIP: Object.values(node)[0],
      hostIPs: Object.values(node).map((ip) => ({ ip })),
    },
  };
}

export function nodeObject(name: string, zone: string): ApiObject {
  const labels = { "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone };
  return { apiVersion: "v1", kind: "Node", metadata: { name, labels } };
}

export function nodeStatus(name: string, addresses: Addresses): unknown {
  const internal = Object.values(addresses).map((address) => ({ type: "InternalIP", address }));
  return {
    status: {
      addresses: [...internal, { type: "Hostname", address: name }],
      conditions: [condition("Ready", true)],
      allocatable: { cpu: "2", memory: "4Gi", pods: "110" },
    },
  };
}

function condition(type: string, holds: boolean) {
  return { type, status: holds ? "True" : "False", reason: "TestGround" };
}

import type { RawObject } from "./raw.ts";

export interface NodeFields {
  readonly zone?: string;
  /** Addresses of type InternalIP, in order. */
  readonly addresses: readonly string[];
  readonly podCIDRs?: readonly string[];
  readonly taints?: readonly { readonly key: string; readonly effect: string }[];
}

/** A core/v1 Node with what a service proxy reads of it. */
export function node(name: string, fields: NodeFields): RawObject {
  const labels = { "kubernetes.io/hostname": name };
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      labels: fields.zone === undefined ? labels : { ...labels, "topology.kubernetes.io/zone": fields.zone },
    },
    spec: {
      ...(fields.podCIDRs && { podCIDR: fields.podCIDRs[0], podCIDRs: fields.podCIDRs }),
      ...(fields.taints && { taints: fields.taints }),
    },
    status: {
      addresses: [
        ...fields.addresses.map((address) => ({ type: "InternalIP", address })),
        { type: "Hostname", address: name },
      ],
    },
  };
}

/** A networking.k8s.io/v1 ServiceCIDR. */
export function serviceCIDR(name: string, cidrs: readonly string[]): RawObject {
  return { apiVersion: "networking.k8s.io/v1", kind: "ServiceCIDR", metadata: { name }, spec: { cidrs } };
}

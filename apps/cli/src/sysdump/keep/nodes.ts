import {
  address,
  cidr,
  cidrs,
  either,
  fields,
  flag,
  jsonText,
  type Keep,
  listOf,
  name,
  oneOf,
  recordOf,
  text,
} from "./keep.ts";
import { metadata } from "./metadata.ts";

const TYPES = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"] as const;
/** `v1.37.1`, `v1.33.4+k3s1` */
const RELEASE = text(/^v?\d+\.\d+\.\d+(?:[-+][a-z0-9.-]{1,40})?$/);

/** Of OVN-Kubernetes: CIDRs by network, one text in old versions. */
const NODE_SUBNETS = jsonText(recordOf(/^[a-z0-9.-]{1,63}$/, either(cidrs, listOf(cidr))));

export const NODE: Keep = fields({
  apiVersion: oneOf("v1"),
  kind: oneOf("Node"),
  metadata: metadata({
    labels: {
      "topology.kubernetes.io/zone": name,
      "kubernetes.io/hostname": name,
      "kubernetes.io/os": name,
      "kubernetes.io/arch": name,
      "fairlead.dev/proxy": name,
    },
    annotations: { "k8s.ovn.org/node-subnets": NODE_SUBNETS },
  }),
  spec: fields({
    podCIDR: cidr,
    podCIDRs: listOf(cidr),
    unschedulable: flag,
    taints: listOf(
      fields({
        key: oneOf(
          "ToBeDeletedByClusterAutoscaler",
          "node.kubernetes.io/not-ready",
          "node.kubernetes.io/unreachable",
          "node.kubernetes.io/unschedulable",
          "node-role.kubernetes.io/control-plane",
        ),
        effect: oneOf("NoSchedule", "PreferNoSchedule", "NoExecute"),
      }),
    ),
  }),
  status: fields({
    addresses: listOf(
      fields({
        type: oneOf("InternalIP", "ExternalIP", "Hostname", "InternalDNS", "ExternalDNS"),
        address: either(address, name),
      }),
    ),
    conditions: listOf(fields({ type: oneOf(...TYPES), status: oneOf("True", "False", "Unknown") })),
    nodeInfo: fields({
      architecture: name,
      operatingSystem: name,
      kubeletVersion: RELEASE,
      kernelVersion: text(/^\d+\.\d+[a-z0-9.+_-]{0,60}$/),
      containerRuntimeVersion: text(/^[a-z-]{1,20}:\/\/v?\d[a-z0-9.+-]{0,40}$/),
    }),
  }),
});

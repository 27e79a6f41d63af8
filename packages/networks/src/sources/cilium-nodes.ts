import { fieldsOf } from "@fairlead/base";
import { ReadingBuilder, recordsOf, specOf } from "./reading.ts";
import type { SourceKind } from "./source.ts";

/**
 * What Cilium gave each node: `podCIDRs` with cluster-pool IPAM, `pools` with multi-pool IPAM. Cilium:
 * pkg/k8s/apis/cilium.io/v2/types.go and pkg/ipam/types.
 */
export const ciliumNodes: SourceKind = {
  resources: [{ group: "cilium.io", version: "v2", plural: "ciliumnodes", kind: "CiliumNode", namespaced: false }],
  writtenByNodes: true,
  read(raw) {
    const ipam = fieldsOf(specOf(raw)["ipam"]);
    const reading = new ReadingBuilder();
    reading.addAll("spec.ipam.podCIDRs", ipam["podCIDRs"]);
    for (const [at, pool] of recordsOf(fieldsOf(ipam["pools"])["allocated"]).entries()) {
      reading.addAll(`spec.ipam.pools.allocated[${at}].cidrs`, pool["cidrs"]);
    }
    return reading.done();
  },
};

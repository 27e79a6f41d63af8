import { fieldsOf, itemsOf } from "@fairlead/base";
import { ReadingBuilder, specOf } from "./reading.ts";
import type { ResourceRef, SourceKind } from "./source.ts";

const pools = (version: string): ResourceRef => ({
  group: "cilium.io",
  version,
  plural: "ciliumpodippools",
  kind: "CiliumPodIPPool",
  namespaced: false,
});

/**
 * Cilium's pools of multi-pool IPAM. `cidrs` holds objects in v2 and texts in v2alpha1. Cilium:
 * pkg/k8s/apis/cilium.io/v2alpha1/ippool_types.go.
 */
export const ciliumPools: SourceKind = {
  resources: [pools("v2"), pools("v2alpha1")],
  read(raw) {
    const spec = specOf(raw);
    const reading = new ReadingBuilder();
    for (const family of ["ipv4", "ipv6"]) {
      for (const [at, item] of itemsOf(fieldsOf(spec[family])["cidrs"]).entries()) {
        const field = `spec.${family}.cidrs[${at}]`;
        if (typeof item === "string") reading.add(field, item);
        else reading.add(`${field}.cidr`, fieldsOf(item)["cidr"]);
      }
    }
    return reading.done();
  },
};

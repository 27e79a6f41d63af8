import { itemsOf } from "@fairlead/base";
import { ignored, ReadingBuilder, specOf } from "./reading.ts";
import type { SourceKind } from "./source.ts";

/**
 * Calico's IPPools, in the group of its own CRDs and in that of its API server, which has the same objects. A disabled
 * pool gives no new addresses, but pods still live in it. One that is for load balancers only never has pods.
 * Calico: api/pkg/apis/projectcalico/v3/ippool.go.
 */
export const calicoIPPools: SourceKind = {
  resources: [
    { group: "crd.projectcalico.org", version: "v1", plural: "ippools", kind: "IPPool", namespaced: false },
    { group: "projectcalico.org", version: "v3", plural: "ippools", kind: "IPPool", namespaced: false },
  ],
  read(raw) {
    const spec = specOf(raw);
    const uses = itemsOf(spec["allowedUses"]);
    if (uses.length > 0 && uses.every((use) => use === "LoadBalancer")) return ignored("it is for load balancers only");
    const reading = new ReadingBuilder();
    reading.add("spec.cidr", spec["cidr"]);
    return reading.done();
  },
};

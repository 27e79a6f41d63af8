import type { ApiObject } from "@fairlead/lab/control-plane/api-client";
import { networkResources } from "@fairlead/lab/control-plane/network-resources";
import { needs } from "../needs.ts";
import type { Spec } from "../spec.ts";
import { allow, install, ipPool, learnFrom, make, subnet, untilLearned } from "./learning.ts";

/** An object of each resource, and what its source has to say of it. */
const reported: readonly (readonly [object: ApiObject, cidr: string])[] = [
  [subnet("ovn-default", "10.16.0.0/16,fd00:10:16::/112"), "10.16.0.0/16"],
  [ipPool("default-ipv4-ippool", "10.17.0.0/16"), "10.17.0.0/16"],
  [object("projectcalico.org/v3", "IPPool", { cidr: "10.18.0.0/16", disabled: true }), "10.18.0.0/16"],
  [
    object("cilium.io/v2", "CiliumPodIPPool", { ipv4: { cidrs: [{ cidr: "10.20.0.0/16" }], maskSize: 24 } }),
    "10.20.0.0/16",
  ],
  [
    object("crd.antrea.io/v1beta1", "IPPool", {
      ipRanges: [{ start: "10.22.0.0", end: "10.22.1.255" }],
      subnetInfo: { gateway: "10.22.0.1", prefixLength: 23 },
    }),
    "10.22.0.0/23",
  ],
  [object("spiderpool.spidernet.io/v2beta1", "SpiderIPPool", { subnet: "10.23.0.0/16" }), "10.23.0.0/16"],
];
const SOURCES = "kube-ovn-subnets,calico-ippools,cilium-pools,antrea-ippools,spiderpool,flannel";

function object(apiVersion: string, kind: string, spec: unknown): ApiObject {
  return { apiVersion, kind, metadata: { name: "one" }, spec };
}

export const everySource: Spec = {
  name: "what each network's own resources say is learned, from a real API server",
  suite: "networks",
  eachFamily: false,
  alone: true,
  unfit: needs("learn"),
  run: async (scene) => {
    await allow(scene);
    await Promise.all(networkResources.map((definition) => install(scene, definition)));
    await Promise.all(reported.map(([one]) => make(scene, one)));
    await learnFrom(scene, `--exclude-cidrs-from=${SOURCES}`);
    const wanted = [...reported.map(([, cidr]) => cidr), "fd00:10:16::/112"];
    await untilLearned(scene, "a CIDR of each", ({ cidrs }) => {
      const missing = wanted.filter((cidr) => !cidrs.some((one) => one.cidr === cidr && one.stage === "effective"));
      return missing.length === 0 ? undefined : `all but ${missing.join(", ")}`;
    });
    return { resources: String(networkResources.length), CIDRs: String(wanted.length) };
  },
};

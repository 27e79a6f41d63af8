import type { ApiObject } from "./api-client.ts";
import {
  ANTREA_IP_POOL,
  CALICO_IP_POOL,
  CILIUM_NODE,
  CILIUM_POD_IP_POOL,
  CLUSTER_USER_DEFINED_NETWORK,
  type Schema,
  SPIDER_IP_POOL,
  SUBNET,
  USER_DEFINED_NETWORK,
  VPC,
} from "./network-schemas.ts";

/**
 * What pod networks describe themselves by. The schemas have, of the fields about pods' addresses, the names, types,
 * required ones and limits of each project's own CustomResourceDefinition (network-schemas.ts); what it has alongside
 * them, the API server drops here. Status is written apart from the rest where the project has it so.
 */
export const networkResources: readonly ApiObject[] = [
  definition("kubeovn.io", "Subnet", "subnets", { v1: SUBNET }),
  definition("kubeovn.io", "Vpc", "vpcs", { v1: VPC }),
  definition("crd.projectcalico.org", "IPPool", "ippools", { v1: CALICO_IP_POOL }),
  definition("projectcalico.org", "IPPool", "ippools", { v3: CALICO_IP_POOL }),
  definition("cilium.io", "CiliumNode", "ciliumnodes", { v2: CILIUM_NODE }),
  definition("cilium.io", "CiliumPodIPPool", "ciliumpodippools", { v2: CILIUM_POD_IP_POOL }),
  definition("k8s.ovn.org", "ClusterUserDefinedNetwork", "clusteruserdefinednetworks", {
    v1: CLUSTER_USER_DEFINED_NETWORK,
  }),
  definition("k8s.ovn.org", "UserDefinedNetwork", "userdefinednetworks", { v1: USER_DEFINED_NETWORK }, "Namespaced"),
  definition("crd.antrea.io", "IPPool", "ippools", { v1beta1: ANTREA_IP_POOL }),
  definition("spiderpool.spidernet.io", "SpiderIPPool", "spiderippools", { v2beta1: SPIDER_IP_POOL }),
];

/** One of them. @throws Error when there is none of that kind in the group */
export function networkResource(group: string, kind: string): ApiObject {
  const found = networkResources.find(({ spec: of }) => isOf(of, group, kind));
  if (found === undefined) throw new Error(`no resource ${kind} of ${group} is written down`);
  return found;
}

function isOf(spec: unknown, group: string, kind: string): boolean {
  const { group: itsGroup, names }: { readonly group?: unknown; readonly names?: { readonly kind?: unknown } } =
    typeof spec === "object" && spec !== null ? spec : {};
  return itsGroup === group && names?.kind === kind;
}

/** @param versions each with its schema; the first is stored */
function definition(
  group: string,
  kind: string,
  plural: string,
  versions: Readonly<Record<string, Schema>>,
  scope: "Cluster" | "Namespaced" = "Cluster",
): ApiObject {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: {
      name: `${plural}.${group}`,
      // Names that look like Kubernetes' own are let in with such a link only.
      annotations: { "api-approved.kubernetes.io": "unapproved, for tests" },
    },
    spec: {
      group,
      scope,
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      versions: Object.entries(versions).map(([name, openAPIV3Schema], at) => ({
        name,
        served: true,
        storage: at === 0,
        schema: { openAPIV3Schema },
        ...(kind !== "CiliumPodIPPool" && { subresources: { status: {} } }),
      })),
    },
  };
}

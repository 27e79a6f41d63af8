/** The custom resources of pod networks. */

import type { ApiObject } from "./api-client.ts";

/**
 * What pod networks describe themselves by. The API server takes every field: what the projects' own definitions
 * refuse is not the proxy's affair. Status is written apart from the rest where the project has it so.
 */
export const networkResources: readonly ApiObject[] = [
  resourceDefinition("kubeovn.io", "Subnet", "subnets", "v1"),
  resourceDefinition("kubeovn.io", "Vpc", "vpcs", "v1"),
  resourceDefinition("crd.projectcalico.org", "IPPool", "ippools", "v1"),
  resourceDefinition("projectcalico.org", "IPPool", "ippools", "v3"),
  resourceDefinition("cilium.io", "CiliumNode", "ciliumnodes", "v2"),
  resourceDefinition("cilium.io", "CiliumPodIPPool", "ciliumpodippools", "v2"),
  resourceDefinition("k8s.ovn.org", "ClusterUserDefinedNetwork", "clusteruserdefinednetworks", "v1"),
  resourceDefinition("k8s.ovn.org", "UserDefinedNetwork", "userdefinednetworks", "v1", "Namespaced"),
  resourceDefinition("crd.antrea.io", "IPPool", "ippools", "v1beta1"),
  resourceDefinition("spiderpool.spidernet.io", "SpiderIPPool", "spiderippools", "v2beta1"),
];

/** One of them. */
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

export function resourceDefinition(
  group: string,
  kind: string,
  plural: string,
  version: string,
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
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
          ...(kind !== "CiliumPodIPPool" && { subresources: { status: {} } }),
        },
      ],
    },
  };
}

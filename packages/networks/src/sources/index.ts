import { antreaIPPools } from "./antrea-ippools.ts";
import { calicoIPPools } from "./calico-ippools.ts";
import { ciliumNodes } from "./cilium-nodes.ts";
import { ciliumPools } from "./cilium-pools.ts";
import { flannel } from "./flannel.ts";
import { kubeOVNSubnets } from "./kube-ovn-subnets.ts";
import { nodes } from "./nodes.ts";
import { ovnKubernetesNodes } from "./ovn-kubernetes-nodes.ts";
import { ovnKubernetesUDNs } from "./ovn-kubernetes-udns.ts";
import type { NetworkSource, SourceKind, SourceSettings } from "./source.ts";
import { spiderpool } from "./spiderpool.ts";

/** The sources by their names in a configuration; `custom` is not among them. */
export const sourceKinds = {
  "kube-ovn-subnets": kubeOVNSubnets,
  "calico-ippools": calicoIPPools,
  "cilium-pools": ciliumPools,
  "cilium-nodes": ciliumNodes,
  "ovn-kubernetes-nodes": ovnKubernetesNodes,
  "ovn-kubernetes-udns": ovnKubernetesUDNs,
  flannel,
  "antrea-ippools": antreaIPPools,
  spiderpool,
  nodes,
} as const satisfies Readonly<Record<string, SourceKind>>;

/** The name of a source, as the configuration has it. */
export type SourceName = keyof typeof sourceKinds;

/** One of the sources that Fairlead knows. */
export function networkSource(name: SourceName, settings: SourceSettings = {}): NetworkSource {
  const kind: SourceKind = sourceKinds[name];
  const { vpcs, only } = settings;
  const asked = [...(vpcs === undefined ? [] : [...vpcs].sort()), ...(only ? [`${only.namespace}/${only.name}`] : [])];
  const selection = kind.selection && { selection: kind.selection(settings) };
  return {
    id: name,
    scope: `${name}${asked.length === 0 ? "" : `(${asked.join(",")})`}`,
    resources: only === undefined ? kind.resources : kind.resources.map((resource) => ({ ...resource, only })),
    ...selection,
    read: kind.read,
  };
}

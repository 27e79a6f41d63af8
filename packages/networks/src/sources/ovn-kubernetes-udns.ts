import { fieldsOf, itemsOf, type RawObject } from "@fairlead/base";
import { ignored, ReadingBuilder, specOf } from "./reading.ts";
import type { ResourceRef, SourceKind } from "./source.ts";

const networks = (plural: string, kind: string, namespaced: boolean): ResourceRef => ({
  group: "k8s.ovn.org",
  version: "v1",
  plural,
  kind,
  namespaced,
});

/**
 * OVN-Kubernetes' primary user-defined networks, a namespace's own and those of several namespaces. Secondary ones
 * (and `localnet`, which is always one) have no endpoints of Services. OVN-Kubernetes:
 * go-controller/pkg/crd/userdefinednetwork/v1/shared.go.
 */
export const ovnKubernetesUDNs: SourceKind = {
  resources: [
    networks("clusteruserdefinednetworks", "ClusterUserDefinedNetwork", false),
    networks("userdefinednetworks", "UserDefinedNetwork", true),
  ],
  read(raw) {
    const spec = specOf(raw);
    const [path, network] = "network" in spec ? ["spec.network", fieldsOf(spec["network"])] : ["spec", spec];
    const layer3 = fieldsOf(network["layer3"]);
    const layer2 = fieldsOf(network["layer2"]);
    if (!isPrimary(layer3) && !isPrimary(layer2)) return ignored("it is not a primary network");
    const reading = new ReadingBuilder();
    if (isPrimary(layer2)) reading.addAll(`${path}.layer2.subnets`, layer2["subnets"]);
    if (!isPrimary(layer3)) return reading.done();
    for (const [at, subnet] of itemsOf(layer3["subnets"]).entries()) {
      reading.add(`${path}.layer3.subnets[${at}].cidr`, fieldsOf(subnet)["cidr"]);
    }
    return reading.done();
  },
};

function isPrimary(layer: RawObject): boolean {
  return layer["role"] === "Primary";
}

import { fieldsOf, textOf } from "@fairlead/core";
import { ignored, ReadingBuilder, shown, specOf } from "./reading.ts";
import type { SourceKind } from "./source.ts";

/** kube-ovn's name for the VPC of pods without another one (its flag --default-vpc). */
const DEFAULT_VPC = "ovn-cluster";
/** The network between nodes and the overlay (--node-switch): no pod lives in it. */
const JOIN_SUBNET = "join";

/**
 * kube-ovn's Subnets. Those of the default VPC's overlay count: other VPCs may have the same addresses, `join` has
 * nodes in it, an underlay (`vlan` without `logicalGateway`) may, and other providers serve secondary interfaces.
 * kube-ovn: pkg/apis/kubeovn/v1/subnet.go.
 */
export const kubeOVNSubnets: SourceKind = {
  resources: [{ group: "kubeovn.io", version: "v1", plural: "subnets", kind: "Subnet", namespaced: false }],
  read(raw, { vpcs = [DEFAULT_VPC] }) {
    const spec = specOf(raw);
    const vpc = textOf(spec["vpc"]) || DEFAULT_VPC;
    if (!vpcs.includes(vpc)) return ignored(`its VPC is ${shown(vpc)}`);
    if (fieldsOf(fieldsOf(raw)["metadata"])["name"] === JOIN_SUBNET) return ignored("it joins nodes to the overlay");
    const provider = textOf(spec["provider"]) || "ovn";
    if (provider !== "ovn") return ignored(`its provider is ${shown(provider)}`);
    if (textOf(spec["vlan"]) && spec["logicalGateway"] !== true) return ignored("it is an underlay");
    const reading = new ReadingBuilder();
    reading.add("spec.cidrBlock", spec["cidrBlock"]);
    return reading.done();
  },
};

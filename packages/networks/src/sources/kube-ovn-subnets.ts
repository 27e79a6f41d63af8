import { fieldsOf, stringOf } from "@fairlead/base";
import { ignored, ReadingBuilder, shown, specOf } from "./reading.ts";
import type { ResourceRef, Selection, SourceKind } from "./source.ts";

/** The default VPC where no Vpc says that it is (--cluster-router gives it another name). */
const DEFAULT_VPC = "ovn-cluster";
/** The network between nodes and the overlay (--node-switch): no pod lives in it. */
const JOIN_SUBNET = "join";

const cluster = (plural: string, kind: string): ResourceRef => ({
  group: "kubeovn.io",
  version: "v1",
  plural,
  kind,
  namespaced: false,
});
const SUBNETS = cluster("subnets", "Subnet");
/** kube-ovn's VPCs: the default one decides which subnets count. */
export const VPCS = cluster("vpcs", "Vpc");

/**
 * kube-ovn's Subnets. Those of the default VPC's overlay count: other VPCs may have the same addresses, `join` has
 * nodes in it, an underlay (`vlan` without `logicalGateway`) may, and other providers serve secondary interfaces.
 * kube-ovn: pkg/apis/kubeovn/v1/subnet.go.
 *
 * Of Vpcs only `status.default` says something that Subnets do not: `status.subnets` is made from their `spec.vpc`, and
 * `spec.namespaces` is who may use a VPC, not which addresses it has. kube-ovn: pkg/controller/vpc.go, init.go.
 */
export const kubeOVNSubnets: SourceKind = {
  resources: [SUBNETS, VPCS],
  selection: ({ vpcs }) => defaultVpcs(vpcs),
  read(raw) {
    const spec = specOf(raw);
    if (nameOf(raw) === JOIN_SUBNET) return ignored("it joins nodes to the overlay");
    const provider = stringOf(spec["provider"]) || "ovn";
    if (provider !== "ovn") return ignored(`its provider is ${shown(provider)}`);
    if (stringOf(spec["vlan"]) && spec["logicalGateway"] !== true) return ignored("it is an underlay");
    const reading = new ReadingBuilder();
    reading.add("spec.cidrBlock", spec["cidrBlock"]);
    return { ...reading.done(), group: stringOf(spec["vpc"]) ?? "" };
  },
};

/** Reads of a Vpc its name, if it is the default one. */
export const VPC_SELECTION: Pick<Selection, "resource" | "read"> = {
  resource: VPCS,
  read: (raw) => (fieldsOf(fieldsOf(raw)["status"])["default"] === true ? nameOf(raw) : undefined),
};

/**
 * A Subnet without `spec.vpc` is in the default VPC: kube-ovn's controller writes it there sooner or later. Several are
 * the default one where its name was changed: the old one says so for ever.
 *
 * @param wanted the VPCs whose Subnets count; undefined: the default ones
 */
function defaultVpcs(wanted: readonly string[] | undefined): Selection {
  return {
    ...VPC_SELECTION,
    counts(vpc, selected) {
      const defaults = selected.size > 0 ? [...selected] : [DEFAULT_VPC];
      const names = wanted ?? defaults;
      return vpc === "" ? defaults.some((name) => names.includes(name)) : names.includes(vpc);
    },
  };
}

function nameOf(raw: unknown): string | undefined {
  return stringOf(fieldsOf(fieldsOf(raw)["metadata"])["name"]);
}

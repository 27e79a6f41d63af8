import { BlockList, isIPv6 } from "node:net";
import type { EndpointSlice, Service } from "@fairlead/core";

export interface FollowedService {
  readonly service: Service;
  readonly slices: readonly EndpointSlice[];
}

/** Which of kube-ovn's networks a Service belongs to; its controller writes it on every Service with a ClusterIP. */
export const VPC_ANNOTATION = "ovn.kubernetes.io/vpc";
/** kube-ovn's `--cluster-router`, unless somebody chooses another name. */
const DEFAULT_VPC = "ovn-cluster";

/**
 * The annotation that kube-ovn's controller would write: the VPC of the endpoints where one is a pod of OVN's, else
 * what is written, else the default one (pkg/controller/endpoint_slice.go, getVpcAndSubnetForEndpoints).
 *
 * @param podCIDRs OVN's, all of them in the default VPC
 * @returns undefined: it is written
 */
export function vpcToWrite({ service, slices }: FollowedService, podCIDRs: readonly string[]): string | undefined {
  const written = service.annotations[VPC_ANNOTATION];
  const own = blockList(podCIDRs);
  const endpoints = slices.flatMap((slice) => slice.endpoints);
  const isOwn = endpoints.some(({ address }) => own.check(address, isIPv6(address) ? "ipv6" : "ipv4"));
  const vpc = isOwn ? DEFAULT_VPC : (written ?? DEFAULT_VPC);
  return vpc === written ? undefined : vpc;
}

function blockList(cidrs: readonly string[]): BlockList {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [address = "", length = ""] = cidr.split("/");
    list.addSubnet(address, Number(length), isIPv6(address) ? "ipv6" : "ipv4");
  }
  return list;
}

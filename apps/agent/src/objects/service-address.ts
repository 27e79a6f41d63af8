import { BlockList, isIP } from "node:net";

/**
 * Whether an API server's address is that of a Service. Before the first sync nobody knows the cluster's Services, so
 * it is told by what stands for them: the variable that kubelet sets in pods; and the form of the `kubernetes` Service,
 * the first address of a private range, which a real API server may have as well.
 *
 * @param known whether a Service with this ClusterIP has been seen
 * @returns why, to be read after the address; undefined: it is none
 */
export function serviceAddressReason(
  address: string,
  known: (address: string) => boolean,
  env: Readonly<Record<string, string | undefined>>,
): string | undefined {
  if (known(address)) return "is the address of a Service";
  if (env["KUBERNETES_SERVICE_HOST"] === address) return "is the Service address that pods are given";
  const type = isIP(address);
  if (type === 0) return undefined;
  const first = type === 6 ? address.endsWith("::1") : address.endsWith(".0.1");
  return first && privateRanges.check(address, type === 6 ? "ipv6" : "ipv4")
    ? "may be the address of a Service"
    : undefined;
}

const privateRanges = new BlockList();
privateRanges.addSubnet("10.0.0.0", 8, "ipv4");
privateRanges.addSubnet("172.16.0.0", 12, "ipv4");
privateRanges.addSubnet("192.168.0.0", 16, "ipv4");
privateRanges.addSubnet("100.64.0.0", 10, "ipv4");
privateRanges.addSubnet("fc00::", 7, "ipv6");

import { familyOf, inAnyOf, parseAddress } from "@fairlead/base";

/**
 * Whether an API server's address is that of a Service. Before the first sync the cluster's Services are unknown, so
 * they are recognized by what stands for them: the variable that kubelet sets in pods; and the form of the `kubernetes`
 * Service, the first address of a private range, which a real API server may have as well.
 *
 * @param known whether a Service with this ClusterIP has been seen
 * @returns why, to be read after the address; undefined: it is not
 */
export function serviceAddressReason(
  address: string,
  known: (address: string) => boolean,
  env: Readonly<Record<string, string | undefined>>,
): string | undefined {
  if (known(address)) return "is the address of a Service";
  if (env["KUBERNETES_SERVICE_HOST"] === address) return "is the Service address that pods are given";
  if (parseAddress(address) === undefined) return undefined;
  const first = familyOf(address) === "IPv6" ? address.endsWith("::1") : address.endsWith(".0.1");
  return first && isPrivate(address) ? "may be the address of a Service" : undefined;
}

const isPrivate = inAnyOf(["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"]);

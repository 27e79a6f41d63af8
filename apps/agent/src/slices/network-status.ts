import { isObject, itemsOf, parseAddressLeniently, parseJSON, stringOf, valueAt } from "@fairlead/base";

/** Where Multus writes what a pod got (Kubernetes Network Plumbing WG, CRD standard v1.3, §5). */
export const NETWORK_STATUS = "k8s.v1.cni.cncf.io/network-status";

/** A longer one is not read: a pod has a handful of interfaces. */
const LONGEST = 65_536;

/** One interface of a pod. */
export interface NetworkStatus {
  /** As Multus writes it: `namespace/name` of a NetworkAttachmentDefinition; the default one may have no slash. */
  readonly network: string;
  /** The pod's default route and `status.podIPs` are of this one. */
  readonly isDefault: boolean;
  /** Canonical addresses of both families. */
  readonly addresses: readonly string[];
}

/**
 * Reads the annotation's value.
 *
 * @returns "invalid" where it is not a list of objects, or an entry has no name or a text that is not an address: what
 *   is half right would leave out endpoints without a reason
 */
export function readNetworkStatus(value: string): readonly NetworkStatus[] | "invalid" {
  if (value.length > LONGEST) return "invalid";
  const list = parseJSON(value);
  if (!Array.isArray(list)) return "invalid";
  const statuses = list.map(statusIn);
  return statuses.every((status) => status !== undefined) ? statuses : "invalid";
}

function statusIn(entry: unknown): NetworkStatus | undefined {
  const network = isObject(entry) ? stringOf(entry["name"]) : undefined;
  if (network === undefined || network === "") return undefined;
  const addresses = itemsOf(valueAt(entry, "ips")).map((ip) =>
    typeof ip === "string" ? parseAddressLeniently(ip)?.text : undefined,
  );
  if (!addresses.every((address) => address !== undefined)) return undefined;
  return { network, isDefault: valueAt(entry, "default") === true, addresses: [...new Set(addresses)] };
}

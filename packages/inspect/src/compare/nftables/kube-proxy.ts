import type { Hex, NftTable, SetElement } from "@fairlead/netfilter/nft";

/**
 * kube-proxy's chains of single services and endpoints, `service-2QRHZV4L-default/kubernetes/tcp/https`: Fairlead has
 * maps of endpoints in their place. All else of the table both have alike.
 */
const OWN_CHAIN = /^(?:service|external|local|endpoint)-[A-Z2-7]{8}-(?:([^/]+\/[^/]+)\/[^/]+\/([^/]*)$)?/;

export function isKubeProxyChain(name: string): boolean {
  return OWN_CHAIN.test(name);
}

/** Where an element leads that only kube-proxy writes; what becomes of packets there only the tracer can tell. */
export function kubeProxyChain({ value }: SetElement): string | undefined {
  return typeof value === "object" && "chain" in value && isKubeProxyChain(value.chain) ? value.chain : undefined;
}

/** `namespace/name:port` of a chain of kube-proxy's; undefined: the kernel had no room for all of its name. */
export function serviceOfChain(chain: string): string | undefined {
  const [, service, port = ""] = OWN_CHAIN.exec(chain) ?? [];
  return service === undefined || port === "" ? service : `${service}:${port}`;
}

/** Chains of source ranges, which both name alike and write in other rules. */
export function isFirewallChain(name: string): boolean {
  return name.startsWith("firewall-");
}

/**
 * Whether services of a table are in chains as only kube-proxy has them: whether it serves them rightly is told by
 * where packets go.
 */
export function isKubeProxyTable(table: NftTable): boolean {
  return kubeProxyKeys(table).size > 0;
}

/** The keys of elements that lead to kube-proxy's chains: none where only Fairlead has written the table. */
export function kubeProxyKeys({ sets }: NftTable): ReadonlySet<Hex> {
  const all = [...sets.values()].flatMap(({ elements }) => [...elements.values()]);
  return new Set(all.filter((one) => kubeProxyChain(one) !== undefined).map(({ key }) => key));
}

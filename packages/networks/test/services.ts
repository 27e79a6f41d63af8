import { familyOf } from "@fairlead/base";
import type { FilterEndpoint, IPFamily, Service, ServiceKey } from "@fairlead/core";
import { AddressIndex, type ServicesView } from "../src/index.ts";

/** Where endpoints may run. */
export const NODES = ["a", "b"] as const;

/** Services by name, each with the addresses of its endpoints, which alternate between the nodes. */
export class TestServices implements ServicesView {
  readonly #index = new AddressIndex();
  readonly #addresses = new Map<ServiceKey, readonly string[]>();

  constructor(services: Readonly<Record<string, readonly string[]>> = {}) {
    for (const [name, addresses] of Object.entries(services)) this.set(name, addresses);
  }

  set(name: string, addresses: readonly string[]): void {
    const key: ServiceKey = `default/${name}`;
    this.#addresses.set(key, addresses);
    this.#index.set(key, addresses);
  }

  keys(): readonly ServiceKey[] {
    return [...this.#addresses.keys()];
  }

  within(cidr: string): ReadonlySet<ServiceKey> {
    return this.#index.within(cidr);
  }

  inNamespace(namespace: string): readonly ServiceKey[] {
    return this.keys().filter((key) => key.startsWith(`${namespace}/`));
  }

  service(key: ServiceKey): Service | undefined {
    return this.#addresses.has(key) ? { ...SERVICE, name: key.slice("default/".length) } : undefined;
  }

  endpoints(key: ServiceKey, family: IPFamily): readonly FilterEndpoint[] {
    const addresses = (this.#addresses.get(key) ?? []).filter((address) => familyOf(address) === family);
    return addresses.map((address, at) => ({ address, nodeName: NODES[at % 2] ?? "" }));
  }
}

const SERVICE: Service = {
  namespace: "default",
  name: "",
  clusterIPs: ["10.96.0.10"],
  ports: [{ name: "", protocol: "TCP", port: 80 }],
  externalIPs: [],
  loadBalancerIPs: [],
  loadBalancerSourceRanges: [],
  internalTrafficPolicy: "Cluster",
  externalTrafficPolicy: "Cluster",
  annotations: {},
};

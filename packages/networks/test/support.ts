import { familyOf } from "@fairlead/base";
import { VirtualClock } from "@fairlead/base/testing";
import type { FilterEndpoint, IPFamily, Service, ServiceKey } from "@fairlead/core";
import {
  AddressIndex,
  customSource,
  type LastKnown,
  Networks,
  type NetworksDecision,
  type NetworksSettings,
  networkSource,
  type ResourceState,
  type ServicesView,
} from "../src/index.ts";

/** Two sources, one of each side, and a custom one whose objects are `{ cidrs: [] }`. */
export const theirs = networkSource("kube-ovn-subnets");
export const ours = networkSource("calico-ippools");
export const others = customSource({ resource: "pools.v1.example.org", fields: ["cidrs"] });

const SETTINGS: NetworksSettings = {
  consentNamespace: "kube-system",
  written: { own: ["10.144.0.0/16"], excluded: [] },
  sources: { excluded: [theirs, others], own: [ours] },
  filter: { mixedServices: "own-endpoints", excludedFrontends: "all", ownershipAnnotation: true },
  debounceMs: 1_000,
  removalDelayMs: 600_000,
};

export interface SetupOptions {
  readonly settings?: Partial<NetworksSettings>;
  readonly known?: LastKnown;
  readonly clock?: VirtualClock;
  /** What kube-ovn's Vpcs are at the start. Default: absent, as without them. */
  readonly vpcs?: ResourceState;
}

/** Networks with a clock that stands still; `start` gives each source its first list, `next` goes on to what is due. */
export function setup({ settings = {}, known, clock = new VirtualClock(), vpcs = "absent" }: SetupOptions = {}) {
  const networks = new Networks({ ...SETTINGS, ...settings }, clock, known);
  const subnet = (name: string, cidrBlock: string, vpc?: string) =>
    networks.objects.upsert(theirs.id, 0, `Subnet/${name}`, { spec: { cidrBlock, vpc } });
  const noSubnet = (name: string) => networks.objects.delete(theirs.id, 0, `Subnet/${name}`);
  const pool = (name: string, cidr: string) =>
    networks.objects.upsert(ours.id, 0, `IPPool/${name}`, { spec: { cidr } });
  const noPool = (name: string) => networks.objects.delete(ours.id, 0, `IPPool/${name}`);
  const vpc = (name: string, isDefault: boolean) =>
    networks.objects.upsert(theirs.id, 1, `Vpc/${name}`, { metadata: { name }, status: { default: isDefault } });
  const noVpc = (name: string) => networks.objects.delete(theirs.id, 1, `Vpc/${name}`);
  const accept = (...cidrs: readonly string[]) =>
    networks.objects.setConsent({ data: { accepted: JSON.stringify(cidrs.map((cidr) => ({ cidr }))) } });
  const start = () => {
    networks.objects.setConsentState("listed");
    networks.objects.setState(theirs.id, 0, "listed");
    if (vpcs !== "waiting") networks.objects.setState(theirs.id, 1, vpcs);
    networks.objects.setState(others.id, 0, "absent");
    networks.objects.setState(ours.id, 0, "listed");
    networks.objects.setState(ours.id, 1, "absent");
  };
  const next = (services: TestServices): NetworksDecision => {
    clock.advanceNow(networks.due ?? 0);
    return networks.decide(services);
  };
  const cidr = (text: string) => networks.report().cidrs.find((one) => one.cidr === text);
  return { networks, clock, subnet, noSubnet, pool, noPool, vpc, noVpc, accept, start, next, cidr };
}

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

import { toEnd } from "@fairlead/base";
import type {
  EndpointSlice,
  IPFamily,
  ModeSemantics,
  OwnershipMemory,
  Planner,
  PlannerOptions,
  PlanStep,
  Service,
  ServiceKey,
  SliceEndpoint,
} from "../src/index.ts";
import type { ClusterState } from "../src/state/cluster-state.ts";

/** iptables and nftables. */
export const SHORT_CUT: ModeSemantics = {
  localSourcesShortCut: true,
  localWithoutEndpoints: "drop",
  withoutEndpoints: "reject",
};

/** ipvs. */
export const NO_SHORT_CUT: ModeSemantics = {
  localSourcesShortCut: false,
  localWithoutEndpoints: "cluster",
  withoutEndpoints: "empty",
  noLocalCounts: "services",
};

export const OPTIONS: PlannerOptions = {
  nodeName: "node-a",
  zone: "z1",
  families: ["IPv4", "IPv6"],
  nodeIPs: { IPv4: "10.201.0.10", IPv6: "fd00:201::10" },
  detectors: { IPv4: { kind: "cidrs", cidrs: ["10.144.0.0/16"] }, IPv6: { kind: "cidrs", cidrs: ["fd00:144::/48"] } },
  nodePortAddresses: {},
  masqueradeAll: false,
  semantics: SHORT_CUT,
};

export function service(name: string, fields: Partial<Service> = {}): Service {
  return {
    namespace: "default",
    name,
    clusterIPs: ["10.96.0.10"],
    ports: [{ name: "", protocol: "TCP", port: 80 }],
    externalIPs: [],
    loadBalancerIPs: [],
    loadBalancerSourceRanges: [],
    internalTrafficPolicy: "Cluster",
    externalTrafficPolicy: "Cluster",
    annotations: {},
    ...fields,
  };
}

export function slice(serviceName: string, endpoints: readonly SliceEndpoint[], fields: Partial<EndpointSlice> = {}) {
  const base: EndpointSlice = {
    namespace: "default",
    name: `${serviceName}-1`,
    serviceName,
    family: "IPv4",
    ports: [{ name: "", protocol: "TCP", port: 8080 }],
    endpoints,
  };
  return { ...base, ...fields };
}

export function endpoint(address: string, fields: Partial<SliceEndpoint> = {}): SliceEndpoint {
  return { address, ready: true, serving: true, terminating: false, nodeName: "node-b", ...fields };
}

/** Serves while it terminates. */
export const DRAINING = { ready: false, serving: true, terminating: true } as const;
export const HERE = { nodeName: "node-a" } as const;
export const NOT_READY = { ready: false, serving: false, terminating: false } as const;

/** The memory as its keeper has it. */
export class Memory implements OwnershipMemory {
  readonly entries = new Map<string, "ours" | "foreign" | "mixed">();

  get(key: ServiceKey, family: IPFamily) {
    return this.entries.get(`${family} ${key}`);
  }

  *services(): Generator<ServiceKey> {
    for (const entry of this.entries.keys()) {
      const [, key = ""] = entry.split(" ");
      const [namespace = "", name = ""] = key.split("/");
      yield `${namespace}/${name}`;
    }
  }

  take(step: PlanStep): void {
    for (const { service: key, family, ownership } of step.memory) {
      if (ownership === undefined) this.entries.delete(`${family} ${key}`);
      else this.entries.set(`${family} ${key}`, ownership);
    }
  }
}

/** Plans what is dirty and keeps the memory. */
export function replan(planner: Planner, state: ClusterState, memory = new Memory()): PlanStep {
  const step = toEnd(planner.replan(state, state.takeDirty().services, memory));
  memory.take(step);
  return step;
}

export function addressesOf(list: readonly { readonly address: string }[] | undefined): readonly string[] {
  return (list ?? []).map(({ address }) => address);
}

import { toEnd } from "@fairlead/base";
import type { ClusterState } from "../src/cluster-state.ts";
import type {
  ConntrackFlow,
  EndpointFilter,
  EndpointSlice,
  IPFamily,
  ModeSemantics,
  OwnershipDecision,
  OwnershipMemory,
  Planner,
  PlannerOptions,
  PlanStep,
  Service,
  ServiceKey,
  SliceEndpoint,
} from "../src/index.ts";

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

export function replan(planner: Planner, state: ClusterState, memory = new Memory()): PlanStep {
  const step = toEnd(planner.replan(state, state.takeDirty().services, memory));
  memory.take(step);
  return step;
}

export function addressesOf(list: readonly { readonly address: string }[] | undefined): readonly string[] {
  return (list ?? []).map(({ address }) => address);
}

/** The other network's addresses, IPv4 and IPv6. */
export function isForeign(address: string): boolean {
  return address.startsWith("10.244.") || address.startsWith("fd00:244:");
}

/** Decides as the real filter's defaults do; `leave` says what it leaves of a foreign service. */
export function fakeFilter(leave: keyof typeof OF_FOREIGN = "all"): EndpointFilter {
  return {
    isForeign,
    decide: (service, _family, endpoints, remembered): OwnershipDecision => {
      const distinct = [...new Set(Array.from(endpoints, ({ address }) => address))];
      const excludedEndpoints = distinct.filter(isForeign).length;
      const ownEndpoints = distinct.length - excludedEndpoints;
      const decided = distinct.length > 0;
      const seen = excludedEndpoints === 0 ? "ours" : ownEndpoints === 0 ? "foreign" : "mixed";
      const ownership = decided ? seen : (remembered ?? "ours");
      const annotation = service.annotations["fairlead.dev/ownership"];
      return {
        ownership,
        decided,
        why: `${ownEndpoints} own, ${excludedEndpoints} excluded`,
        frontends: ownership === "foreign" ? OF_FOREIGN[leave] : "all",
        ...(ownership === "mixed" ? { excludes: ({ address }) => isForeign(address) } : {}),
        decidingCIDRs: excludedEndpoints > 0 ? ["10.244.0.0/16"] : [],
        ownEndpoints,
        excludedEndpoints,
        ...(annotation === undefined ? {} : { problem: `annotation ${annotation} means nothing` }),
      };
    },
  };
}

/** `udp 10.96.0.10:53 <- 10.144.1.5:8080`, to where the client sent and from where the answer comes. */
export function flow(text: string): ConntrackFlow & { readonly text: string } {
  const [protocol = "", to = "", , from = ""] = text.split(" ");
  const [originalDestination = "", originalPort] = to.split(":");
  const [replySource = "", replyPort] = from.split(":");
  const ports = { originalPort: Number(originalPort), replyPort: Number(replyPort) };
  return { text, family: "IPv4", protocol, originalDestination, replySource, ...ports };
}

const OF_FOREIGN = {
  all: "none",
  "cluster-ip": "all-but-cluster-ip",
  "excluded-clients": "all-but-excluded-clients",
} as const;

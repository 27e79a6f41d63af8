import { NETWORKS_MANAGER, type RawObject } from "@fairlead/base";
import type { LightApiServer } from "@fairlead/testkit/api-server";
import { NETWORK_STATUS, SERVICE_NETWORK } from "../../src/controller/networks/decode.ts";
import { type SliceObject, sliceObjectOf } from "../../src/controller/networks/slice.ts";
import type { ServicePlan, SliceState } from "../../src/controller/networks/slice-state.ts";

const NETWORK = "lab/storage";

export interface PodFields {
  readonly name: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly ready?: boolean;
  readonly terminating?: boolean;
  readonly hostNetwork?: boolean;
  readonly phase?: string;
  /** It has an address of its first interface; false: it starts. */
  readonly hasIP?: boolean;
  readonly nodeName?: string;
  /** Addresses on the network; undefined: not attached. */
  readonly ips?: readonly string[];
  /** In place of a good annotation; null: none. */
  readonly status?: string | null;
  readonly port?: number;
}

/** As the API has it, with a status as Multus writes it. */
export function pod(fields: PodFields): RawObject {
  const { name, namespace = "lab", labels = { app: "web" }, nodeName = "node-a", ips, port = 8080 } = fields;
  const networks = [
    { name: "cbr0", interface: "eth0", ips: ["10.144.1.9"], mac: "02:00:00:00:00:01", default: true, dns: {} },
    ...(ips === undefined ? [] : [{ name: NETWORK, interface: "net1", ips, mac: "02:00:00:00:00:02", dns: {} }]),
  ];
  const { status = JSON.stringify(networks) } = fields;
  return {
    metadata: {
      namespace,
      name,
      uid: `uid-${name}`,
      labels,
      ...(status !== null && { annotations: { [NETWORK_STATUS]: status } }),
      ...(fields.terminating && { deletionTimestamp: "2026-11-01T00:00:00Z" }),
    },
    spec: {
      nodeName,
      ...(fields.hostNetwork && { hostNetwork: true }),
      containers: [{ name: "c", ports: [{ name: "http", containerPort: port }] }],
    },
    status: {
      phase: fields.phase ?? "Running",
      ...(fields.hasIP !== false && { podIPs: [{ ip: "10.144.1.9" }] }),
      conditions: [{ type: "Ready", status: fields.ready === false ? "False" : "True" }],
    },
  };
}

export interface ServiceFields {
  readonly network?: string;
  readonly terminating?: boolean;
  readonly labels?: Readonly<Record<string, string>>;
  readonly spec?: Readonly<Record<string, unknown>>;
}

export function service({ network = "storage", labels = {}, spec = {}, terminating }: ServiceFields = {}): RawObject {
  return {
    metadata: {
      namespace: "lab",
      name: "web",
      uid: "uid-web",
      labels: { "service.kubernetes.io/service-proxy-name": "storage", ...labels },
      annotations: { [SERVICE_NETWORK]: network },
      ...(terminating && { deletionTimestamp: "2026-11-01T00:00:00Z" }),
    },
    spec: {
      clusterIP: "10.96.0.10",
      ipFamilies: ["IPv4"],
      selector: { app: "web" },
      ports: [{ name: "http", protocol: "TCP", port: 80, targetPort: "http" }],
      ...spec,
    },
  };
}

/** The API server, as far as slices go: names, versions, and what it answers. */
export class Cluster {
  readonly slices = new Map<string, SliceObject>();
  writes = 0;
  #made = 0;

  /** Carries out a plan and reports what it made to the state. */
  apply(state: SliceState, { service: owner, create, update, remove }: ServicePlan): void {
    for (const { namespace, name } of remove) {
      this.slices.delete(name);
      state.setSlice(`${namespace}/${name}`, undefined);
      this.writes += 1;
    }
    if (owner === undefined) return;
    for (const content of create) {
      this.#made += 1;
      this.#put(state, `made-${this.#made}`, sliceObjectOf(owner, content));
    }
    for (const { over, content } of update) this.#put(state, over.name, sliceObjectOf(owner, content, over));
  }

  #put(state: SliceState, name: string, object: SliceObject): void {
    this.writes += 1;
    const metadata = { ...object.metadata, name, resourceVersion: String(this.writes) };
    const stored = { ...object, metadata } as typeof object;
    this.slices.set(name, stored);
    // As it comes back: text.
    state.setSlice(`lab/${name}`, JSON.parse(JSON.stringify(stored)));
  }

  settle(state: SliceState, most = 100): readonly ServicePlan[] {
    const plans = [...state.dirty].map((key) => state.plan(key, most));
    for (const plan of plans) this.apply(state, plan);
    return plans;
  }

  /** Addresses by port: `10.1.0.1:8080`, with what is said of readiness. */
  endpoints(): readonly string[] {
    return [...this.slices.values()]
      .flatMap(({ ports, endpoints }) =>
        endpoints.map(({ addresses: [address], conditions }) => {
          const { ready, serving, terminating } = conditions;
          const words = [ready && "ready", serving && "serving", terminating && "terminating"].filter(Boolean);
          return `${address}:${ports.map(({ port }) => port).join(",")} ${words.join(" ")}`.trim();
        }),
      )
      .sort();
  }
}

export const ANOTHERS = {
  metadata: {
    namespace: "lab",
    name: "web-abcde",
    labels: {
      "kubernetes.io/service-name": "web",
      "endpointslice.kubernetes.io/managed-by": `not-${NETWORKS_MANAGER}`,
    },
  },
  addressType: "IPv4",
  ports: [{ name: "http", port: 8080 }],
  endpoints: [{ addresses: ["10.144.1.9"] }],
};

export const AT = {
  services: "/api/v1/services",
  pods: "/api/v1/pods",
  slices: "/apis/discovery.k8s.io/v1/endpointslices",
  events: "/api/v1/events",
  leases: "/apis/coordination.k8s.io/v1/leases",
  networks: "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions",
} as const;

/** Addresses in the slices that the controller wrote, in order. */
export function writtenAddresses({ store }: LightApiServer): readonly string[] {
  return store
    .list(AT.slices)
    .filter((slice) => managerOf(slice) === NETWORKS_MANAGER)
    .flatMap((slice) => slice["endpoints"] as { addresses: string[]; conditions: { ready: boolean } }[])
    .map(({ addresses: [address = ""], conditions: { ready } }) => `${address}${ready ? "" : " not ready"}`)
    .sort();
}

function managerOf({ metadata }: { readonly metadata?: unknown }): string | undefined {
  const { labels = {} } = metadata as { readonly labels?: Readonly<Record<string, string>> };
  return labels["endpointslice.kubernetes.io/managed-by"];
}

export function sliceWrites({ requests }: LightApiServer): readonly string[] {
  return requests
    .filter(({ method, path }) => method !== "GET" && path.includes("/endpointslices"))
    .map(({ method }) => method);
}

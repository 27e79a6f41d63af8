/** What a spec is, and the scene that it runs in. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { IPFamily } from "@fairlead/core";
import { type ApiClient, type ApiObject, objectPath } from "@fairlead/lab/control-plane/api-client";
import type { Ability, Cluster, ClusterNode, ClusterShape, NetworkShape, Pod } from "@fairlead/lab/provider/cluster";
import { folderPrefix } from "@fairlead/lab/support/run-inventory";
import { until } from "./expect.ts";

export const SUITES = [
  "services",
  "multi-cni",
  "networks",
  "network-policies",
  "faults",
  "swap",
  "attacks",
  "soak",
  "sig-network",
  "sig-network-others",
  "rollout",
  "load-balancer",
  "gateway",
] as const;

export type Suite = (typeof SUITES)[number];

/** The packages whose promises specs show, by the names of their folders. */
export const SPEC_PACKAGES = [
  "agent",
  "backend-iptables",
  "backend-ipvs",
  "backend-nftables",
  "backend-userspace",
  "cli",
  "core",
  "endpoint-filter",
  "kernel",
  "networks",
  "watch",
] as const;

export type SpecPackage = (typeof SPEC_PACKAGES)[number];

/** What the specs of a suite are about, unless they say otherwise. */
const SUBJECTS_OF_SUITE: Readonly<Record<Suite, readonly SpecPackage[]>> = {
  services: ["core", "backend-iptables", "backend-ipvs", "backend-nftables", "backend-userspace"],
  "multi-cni": ["endpoint-filter"],
  networks: ["networks"],
  "network-policies": ["backend-iptables", "backend-ipvs", "backend-nftables"],
  faults: ["agent"],
  swap: ["agent"],
  attacks: ["agent"],
  soak: [],
  "sig-network": ["agent"],
  "sig-network-others": ["agent"],
  rollout: ["agent"],
  "load-balancer": ["backend-iptables", "backend-nftables"],
  gateway: ["agent"],
};

export function subjectsOf({ suite, about }: Pick<Spec, "suite" | "about">): readonly SpecPackage[] {
  return about ?? SUBJECTS_OF_SUITE[suite];
}

/** Their specs run several at a time, unless they say otherwise. */
const TOGETHER: ReadonlySet<Suite> = new Set(["services", "multi-cni"]);

export function runsByItself({ suite, byItself = !TOGETHER.has(suite) }: Pick<Spec, "suite" | "byItself">): boolean {
  return byItself;
}

export type Figures = Readonly<Record<string, string>>;

/** What one spec asserts, seen by clients: which pod answered, which source was seen, refused, timed out. */
export interface Spec {
  /** Unique; what `--spec` matches, with the family after it. */
  readonly name: string;
  readonly suite: Suite;
  /** The packages that it is about; default: those of its suite. */
  readonly about?: readonly SpecPackage[];
  /** It is run once for each family of the cluster; default true. */
  readonly eachFamily?: boolean;
  /** No other spec runs meanwhile: it restarts agents, or stops the API server. Default: in all suites but two. */
  readonly byItself?: boolean;
  /** Why it cannot run on such a cluster; undefined: it can. */
  readonly unfit?: (shape: ClusterShape, family: IPFamily) => string | undefined;
  /** @returns figures for the report, if it has any */
  run(scene: Scene, cluster: Cluster): Promise<Figures | undefined> | Promise<void>;
}

/** `spec` of a core/v1 Service, as far as a spec wants to say it. */
type ServiceSpec = Readonly<Record<string, unknown>>;

/** What a running spec has of its own. Everything made through it is removed after the spec. */
export interface Scene {
  readonly cluster: Cluster;
  /** The family under test; the first one in specs that are not run for each. */
  readonly family: IPFamily;
  readonly namespace: string;
  /** The first two. */
  readonly nodes: readonly [first: ClusterNode, second: ClusterNode];
  readonly network: NetworkShape;
  pod(fields: ScenePod): Promise<Pod>;
  /** A service in `namespace`, only of `family` unless `spec` says otherwise. */
  service(name: string, spec: ServiceSpec, annotations?: Readonly<Record<string, string>>): Promise<ServiceHandle>;
  /** Asks until there is nothing left to complain of. */
  until(what: string, complaint: () => Promise<string | undefined>): Promise<void>;
  /** A folder for files, only the spec's. */
  folder(): Promise<string>;
  /** Runs after the spec, the latest first. */
  later(undo: () => Promise<void>): void;
}

export interface ServiceHandle {
  readonly name: string;
  readonly clusterIP: string;
  readonly clusterIPs: readonly string[];
  /** Of the first port, as the API server chose it. */
  readonly nodePort: number;
  readonly healthCheckNodePort: number;
  patch(patch: unknown): Promise<void>;
  /** Null removes it. */
  annotate(name: string, value: string | null): Promise<void>;
  /** What a load balancer's controller would set. */
  setIngress(addresses: readonly string[]): Promise<void>;
  remove(): Promise<void>;
}

interface NewService {
  readonly name: string;
  readonly namespace: string;
  readonly family: IPFamily;
  readonly spec: ServiceSpec;
  readonly annotations: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
}

export async function createService(api: ApiClient, wanted: NewService): Promise<ServiceHandle> {
  const { name, namespace, family, spec, annotations, labels = {} } = wanted;
  const single = { ipFamilies: [family], ipFamilyPolicy: "SingleStack" };
  const metadata = { name, namespace, annotations, labels };
  const families = "ipFamilyPolicy" in spec ? {} : single;
  const created = await api.create({ apiVersion: "v1", kind: "Service", metadata, spec: { ...families, ...spec } });
  return handle(api, created);
}

/**
 * Runs one spec in a Kubernetes namespace of its own.
 *
 * @param namespace unique in the cluster
 * @param before is called with the failure while everything still stands
 */
export async function runSpec(
  spec: Spec,
  cluster: Cluster,
  family: IPFamily,
  namespace: string,
  before: (error: unknown) => Promise<void> = async () => {},
): Promise<Figures | undefined> {
  const undo = new AsyncDisposableStack();
  try {
    const figures = await spec.run(await openScene(cluster, family, namespace, undo), cluster);
    return figures ?? undefined;
  } catch (error) {
    await before(error);
    throw error;
  } finally {
    await undo.disposeAsync();
  }
}

/** For `Spec.unfit`: why a cluster without the ability cannot carry a spec. @param hint what would bring it */
export function needs(ability: Ability, hint = "this provider lacks it"): (shape: ClusterShape) => string | undefined {
  return ({ abilities = [] }) => (abilities.includes(ability) ? undefined : `needs ability ${ability}: ${hint}`);
}

/** For `Spec.unfit`: the spec is for clusters in these modes. @param why it cannot be carried in another one */
export function onlyIn(modes: readonly string[], why: string): (shape: ClusterShape) => string | undefined {
  return ({ mode }) => (modes.includes(mode) ? undefined : why);
}

/** For `Spec.unfit`: the spec is not for clusters in these modes. */
export function notIn(modes: readonly string[], why: string): (shape: ClusterShape) => string | undefined {
  return ({ mode }) => (modes.includes(mode) ? why : undefined);
}

/** For `Spec.unfit`: the spec is for clusters whose first family is IPv4. @param why it cannot be carried in IPv6 */
export function onlyIPv4(why: string): (shape: ClusterShape) => string | undefined {
  return ({ families }) => (families[0] === "IPv4" ? undefined : why);
}

/** An ability that the shape has. */
export function able<T>(method: T | undefined): T {
  if (method === undefined) throw new Error("the cluster's shape names an ability that it does not have");
  return method;
}

/** One endpoint on each of the first two nodes, and a pod that calls from the first. @param app their label */
export async function nearAndFar(scene: Scene, app = "web") {
  const [first, second] = scene.nodes;
  const [near, far, caller] = await Promise.all([
    scene.pod({ node: first, app }),
    scene.pod({ node: second, app }),
    scene.pod({ node: first }),
  ]);
  return { near, far, caller, by: [near, far] };
}

export async function each(scene: Scene, act: (node: ClusterNode) => Promise<void>): Promise<void> {
  await Promise.all(scene.cluster.nodes.map(act));
}

/** Afterwards every agent is started as usual. */
export function restoreAgents(scene: Scene): void {
  scene.later(() => each(scene, ({ agent }) => agent.restart()));
}

interface ScenePod {
  readonly node: ClusterNode;
  /** Label `app`; default none: a pod that only calls. */
  readonly app?: string;
  /** Default `Scene.network`. */
  readonly network?: string;
  readonly ready?: boolean;
}

function handle(api: ApiClient, created: ApiObject): ServiceHandle {
  const path = objectPath({ apiVersion: "v1", kind: "Service", metadata: created.metadata });
  const spec = read(created["spec"]);
  const clusterIPs = spec.clusterIPs ?? [];
  const patch = async (change: unknown) => void (await api.patch(path, change));
  return {
    name: created.metadata.name,
    clusterIP: clusterIPs[0] ?? "",
    clusterIPs,
    nodePort: spec.ports?.[0]?.nodePort ?? 0,
    healthCheckNodePort: spec.healthCheckNodePort ?? 0,
    patch,
    annotate: (name, value) => patch({ metadata: { annotations: { [name]: value } } }),
    setIngress: async (addresses) => {
      const ingress = addresses.map((ip) => ({ ip }));
      await api.patch(`${path}/status`, { status: { loadBalancer: { ingress } } });
    },
    remove: () => api.delete(path),
  };
}

interface CreatedSpec {
  readonly clusterIPs?: readonly string[];
  readonly ports?: readonly { readonly nodePort?: number }[];
  readonly healthCheckNodePort?: number;
}

/** The API server's own words, which need no distrust here. */
function read(spec: unknown): CreatedSpec {
  return typeof spec === "object" && spec !== null ? spec : {};
}

async function openScene(
  cluster: Cluster,
  family: IPFamily,
  namespace: string,
  undo: AsyncDisposableStack,
): Promise<Scene> {
  const { api } = cluster;
  const own = { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } } as const;
  await api.create(own);
  undo.defer(() => api.delete(objectPath(own)));
  const network = cluster.networks.find(({ excluded }) => !excluded);
  const [first, second] = cluster.nodes;
  if (network === undefined || first === undefined || second === undefined) {
    throw new Error("a spec needs two nodes and a network that is not excluded");
  }
  return {
    cluster,
    family,
    namespace,
    nodes: [first, second],
    network,
    pod: (fields) => startPod(cluster, namespace, network, undo, fields),
    service: async (name, spec, annotations = {}) => {
      const service = await createService(api, { name, namespace, family, spec, annotations });
      undo.defer(service.remove);
      return service;
    },
    until,
    folder: async () => {
      const path = await mkdtemp(join(tmpdir(), `${folderPrefix}-`));
      undo.defer(() => rm(path, { recursive: true, force: true }));
      return path;
    },
    later: (undoIt) => undo.defer(undoIt),
  };
}

async function startPod(
  cluster: Cluster,
  namespace: string,
  network: NetworkShape,
  undo: AsyncDisposableStack,
  fields: Parameters<Scene["pod"]>[0],
) {
  const { app, node, network: wanted = network.name, ready = true } = fields;
  const labels = app === undefined ? {} : { app };
  const pod = await cluster.startPod({ namespace, node, network: wanted, ready, labels });
  undo.defer(() => pod.remove());
  return pod;
}

import { goldenScenario } from "@fairlead/testkit";
import { fail, LightApiServer, printed, type SeenRequest } from "@fairlead/testkit/api-server";
import { CONFIG_CONF, KUBE_PROXY, KUBECONFIG_CONF } from "../migrate/simulated-cluster.ts";
import { kubeconfigFor } from "./files.ts";
import { notFound } from "./node-cluster.ts";
import { nodePrograms } from "./recorded.ts";

export const NODE_NAMES = ["node-a", "node-b", "node-c"];

const STARTED: MigratedCluster[] = [];

export async function stopClusters(): Promise<void> {
  await Promise.all(STARTED.splice(0).map((cluster) => cluster.stop()));
}

export async function emptyCluster(): Promise<MigratedCluster> {
  const cluster = await new MigratedCluster().start();
  STARTED.push(cluster);
  return cluster;
}

/** As kubeadm has it. */
export async function kubeadmCluster(
  names: readonly string[] = NODE_NAMES,
  kubeProxy: object = { name: "kube-proxy" },
) {
  const cluster = await emptyCluster();
  const labels = { "k8s-app": "kube-proxy" };
  const { template } = KUBE_PROXY.spec;
  cluster.add({ kind: "DaemonSet", metadata: kubeProxy, spec: { selector: { matchLabels: labels }, template } });
  const data = {
    "config.conf": CONFIG_CONF.replace("mode: nftables\n", ""),
    "kubeconfig.conf": KUBECONFIG_CONF.replace("cp.example", "192.0.2.1"),
  };
  const { namespace = "kube-system" } = kubeProxy as { readonly namespace?: string };
  cluster.add({ kind: "ConfigMap", metadata: { name: "kube-proxy", namespace }, data });
  cluster.add(kubernetesService("10.96.0.1"));
  for (const name of names) {
    const status = { conditions: [{ type: "Ready", status: "True" }] };
    cluster.add({ kind: "Node", metadata: { name, labels: { "kubernetes.io/os": "linux" } }, status });
  }
  return cluster;
}

export function kubernetesService(clusterIP: string) {
  const spec = { clusterIP, ports: [{ name: "https", port: 443, protocol: "TCP" }] };
  return { kind: "Service", metadata: { name: "kubernetes", namespace: "default" }, spec };
}

export const scenario = goldenScenario("09-loadbalancer");

export async function scenarioCluster(names: readonly string[]): Promise<MigratedCluster> {
  const cluster = await kubeadmCluster(names);
  cluster.api.put(scenario.objects);
  cluster.programs = () => nodePrograms(scenario.iptables);
  return cluster;
}

// biome-ignore lint/suspicious/noExplicitAny: objects of any kind; a path that is not there fails its test
type Any = any;

/** What a node's programs print in a pod, by the whole command or by its first word. */
export type Programs = Readonly<Record<string, string>>;

const COLLECTIONS = {
  ClusterRoleBinding: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
  ConfigMap: "/api/v1/configmaps",
  DaemonSet: "/apis/apps/v1/daemonsets",
  Lease: "/apis/coordination.k8s.io/v1/leases",
  Node: "/api/v1/nodes",
  Pod: "/api/v1/pods",
  Service: "/api/v1/services",
  ServiceAccount: "/api/v1/serviceaccounts",
} as const;
type Kind = keyof typeof COLLECTIONS;

const WITHOUT_NAMESPACE: readonly string[] = ["ClusterRoleBinding", "Node"];

/** A cluster in memory behind an API server's paths. Its controllers and kubelets have done their work at once. */
export class MigratedCluster {
  readonly api = new LightApiServer();
  /** Nodes on which a DaemonSet's pods do not become ready: `node daemonset`. */
  readonly unready = new Set<string>();
  programs: (node: string) => Programs = () => ({});
  /** Called before each change but of Leases; true: it fails. */
  refuses: (request: SeenRequest) => boolean = () => false;
  /** Called before an object of a kind is read by its name. */
  onGet: (collection: string) => void = () => {};
  kubeconfig = "";
  #reconciling = false;

  async start(): Promise<this> {
    this.kubeconfig = kubeconfigFor(await this.api.start());
    this.api.answerInstead = (request, response) => {
      if (request.method === "GET") this.onGet(request.path);
      if (!isChange(request) || !this.refuses(request)) return false;
      fail(response, 500, "InternalError", "killed");
      return true;
    };
    this.api.pods = {
      exec: ({ name }, _container, argv) => {
        const programs = this.programs(this.get("Pod", name).spec.nodeName);
        const text = programs[argv.join(" ")] ?? programs[argv[0] ?? ""];
        return text === undefined ? notFound(argv) : printed(text);
      },
      connect: () => "there is no agent",
    };
    this.api.store.onEvent(() => this.#reconcile());
    return this;
  }

  stop(): Promise<void> {
    return this.api.stop();
  }

  /** An object of kube-system where it says nothing else. */
  add(object: Any): void {
    const { kind, metadata } = object;
    const namespace = WITHOUT_NAMESPACE.includes(kind) ? {} : { namespace: metadata.namespace ?? "kube-system" };
    this.api.store.put(COLLECTIONS[kind as Kind], { ...object, metadata: { ...metadata, ...namespace } });
  }

  /** @returns undefined: it is not there */
  get(kind: Kind, name: string): Any {
    return this.#all(kind).find(({ metadata }) => metadata.name === name);
  }

  /** `Kind/name` of all but pods. */
  names(): readonly string[] {
    const kinds = (Object.keys(COLLECTIONS) as Kind[]).filter((kind) => kind !== "Pod");
    return kinds.flatMap((kind) => this.#all(kind).map(({ metadata }) => `${kind}/${metadata.name}`));
  }

  objects(): readonly Any[] {
    return (Object.keys(COLLECTIONS) as Kind[]).flatMap((kind) => this.#all(kind));
  }

  /** What was written, but for Leases. */
  get changes(): readonly SeenRequest[] {
    return this.api.requests.filter(isChange);
  }

  #all(kind: Kind): readonly Any[] {
    return this.api.store.list(COLLECTIONS[kind]);
  }

  #put(kind: Kind, object: Any): void {
    this.api.store.put(COLLECTIONS[kind], object);
  }

  #reconcile(): void {
    if (this.#reconciling) return;
    this.#reconciling = true;
    for (const daemonSet of this.#all("DaemonSet")) this.#observe(daemonSet);
    for (const pod of this.#all("Pod")) this.#start(pod);
    this.#reconciling = false;
  }

  /** Another generation of a DaemonSet is seen by its controller, and has pods where it is to have them. */
  #observe(daemonSet: Any): void {
    const { metadata, spec, seen, ...rest } = daemonSet;
    const text = JSON.stringify(spec);
    const isNew = seen !== text;
    const generation = (metadata.generation ?? 0) + (isNew ? 1 : 0);
    const owned = { ...metadata, uid: `uid of ${metadata.name}`, generation };
    if (isNew)
      this.#put("DaemonSet", {
        ...rest,
        metadata: owned,
        spec,
        seen: text,
        status: { observedGeneration: generation },
      });
    for (const node of this.#all("Node")) this.#place(owned, spec, node);
  }

  #place(owner: Any, spec: Any, node: Any): void {
    const nodeName = node.metadata.name;
    const { namespace } = owner;
    const name = `${owner.name}-${nodeName}`;
    if (!isPlaced(spec, node)) {
      this.api.store.delete(COLLECTIONS.Pod, `${namespace}/${name}`);
      return;
    }
    if (this.get("Pod", name) !== undefined) return;
    const status = this.unready.has(`${nodeName} ${owner.name}`) ? "False" : "True";
    this.#put("Pod", {
      metadata: { name, namespace, labels: spec.selector.matchLabels, ownerReferences: [{ uid: owner.uid }] },
      spec: { nodeName },
      status: { conditions: [{ type: "Ready", status }] },
    });
  }

  /** Pods whose owner is gone go; those of no owner start. */
  #start(pod: Any): void {
    const { ownerReferences, name, namespace } = pod.metadata;
    if (ownerReferences === undefined) {
      if (pod.status === undefined)
        this.#put("Pod", { ...pod, status: { conditions: [{ type: "Ready", status: "True" }] } });
      return;
    }
    const uids = this.#all("DaemonSet").map(({ metadata }) => metadata.uid);
    if (!uids.includes(ownerReferences[0].uid)) this.api.store.delete(COLLECTIONS.Pod, `${namespace}/${name}`);
  }
}

function isChange({ method, path }: SeenRequest): boolean {
  return method !== "GET" && !path.includes("/leases");
}

function isPlaced(spec: Any, { metadata }: Any): boolean {
  const required = spec.template.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  if (required == null) return true;
  return required.nodeSelectorTerms.some(({ matchExpressions }: Any) =>
    matchExpressions.every(
      ({ key, operator, values }: Any) => values.includes(metadata.labels?.[key]) === (operator === "In"),
    ),
  );
}

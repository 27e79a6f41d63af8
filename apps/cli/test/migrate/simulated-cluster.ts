import type { Clock } from "@fairlead/base";
import type { MigrationPort, Verified } from "../../src/migrate/migrate.ts";
import {
  assignedProxy,
  isPlacedOn,
  type MigrationState,
  type NodeState,
  type Placement,
  type ProxyName,
  provenText,
} from "../../src/migrate/state.ts";

/** What goes wrong on a node, with one of the proxies. */
export type Fault = "none" | "never ready" | "crashes" | "rules differ" | "not Ready";

/** Thrown in the place of a kill. */
export class Killed extends Error {}

type Pod = { age: number; template: number; restarts: number };
type Node = {
  name: string;
  label?: ProxyName | undefined;
  proven?: string;
  problem?: string;
  fault: Fault;
  of: ProxyName;
  pods: Map<ProxyName, Pod>;
};

const READY_AT = 2;
const PROXIES = ["kube-proxy", "fairlead"] as const;

/**
 * Nodes, two DaemonSets and their controller, which does one step at each observation. It fails the test that leaves a
 * node without a proxy.
 */
export class SimulatedCluster implements MigrationPort {
  readonly nodes: Node[];
  readonly #placements = new Map<ProxyName, Placement>([["kube-proxy", "everywhere"]]);
  readonly #templates = new Map<ProxyName, number>(PROXIES.map((proxy) => [proxy, 1]));
  /** Changes until the next kill; each counts twice, before and after it is there. */
  killAfter = Number.POSITIVE_INFINITY;
  /** Every change of a label. */
  readonly assigned: string[] = [];
  /** The mode that would be installed, and the one that is; undefined: kube-proxy's. */
  mode: string | undefined;
  #installed: string | undefined;
  readonly installedModes: (string | undefined)[] = [];
  /** What each verified node was held against: `node-0 fairlead`. */
  readonly verified: string[] = [];
  /** The mode of Fairlead on each node that was given back to kube-proxy. */
  readonly leftIn: (string | undefined)[] = [];

  constructor(faults: readonly (readonly [Fault, ProxyName])[]) {
    this.nodes = faults.map(([fault, of], at) => {
      return { name: `node-${at}`, fault, of, pods: new Map([["kube-proxy", { age: 9, template: 1, restarts: 0 }]]) };
    });
  }

  placement(proxy: ProxyName): Placement | undefined {
    return this.#placements.get(proxy);
  }

  serving(node: Node): readonly ProxyName[] {
    return PROXIES.filter((proxy) => node.pods.has(proxy));
  }

  async observe(): Promise<MigrationState> {
    this.#reconcile();
    const fairlead = this.#placements.get("fairlead");
    return {
      kubeProxy: { placement: this.#placements.get("kube-proxy") ?? "everywhere" },
      ...(fairlead === undefined || fairlead === "everywhere"
        ? {}
        : {
            fairlead: {
              placement: fairlead,
              current: this.mode === this.#installed,
              ...(this.mode !== this.#installed && { otherMode: true as const }),
            },
          }),
      nodes: this.nodes.map((node) => this.#seen(node)),
    };
  }

  install(placement: Placement): Promise<void> {
    return this.#change(() => {
      this.#placements.set("fairlead", placement);
      if (this.#installed !== this.mode) this.#templates.set("fairlead", (this.#templates.get("fairlead") ?? 0) + 1);
      this.#installed = this.mode;
      this.installedModes.push(this.mode);
    });
  }

  uninstall(): Promise<void> {
    return this.#change(() => this.#placements.delete("fairlead"));
  }

  place(proxy: ProxyName, placement: Placement): Promise<void> {
    return this.#change(() => {
      this.#placements.set(proxy, placement);
      this.#templates.set(proxy, (this.#templates.get(proxy) ?? 0) + 1);
    });
  }

  async verify(name: string, against: ProxyName): Promise<Verified> {
    const node = this.#node(name);
    this.verified.push(`${name} ${against}`);
    const proxy = this.serving(node)[0];
    const isDifferent = node.fault === "rules differ" && proxy === node.of;
    return isDifferent ? { kind: "different", what: "default/web differs" } : { kind: "clean" };
  }

  assign(name: string, to: ProxyName): Promise<void> {
    return this.#change(() => {
      const node = this.#node(name);
      this.assigned.push(`${name} ${to}`);
      if (to === "kube-proxy") this.leftIn.push(this.#modeOn(node));
      node.label = to;
      delete node.proven;
      delete node.problem;
    });
  }

  async putBack(name: string, to: ProxyName, reason: string): Promise<void> {
    await this.assign(name, to);
    this.#node(name).problem = reason;
  }

  prove(name: string, proxy: ProxyName): Promise<void> {
    return this.#change(() => {
      this.#node(name).proven = provenText(proxy, this.mode);
    });
  }

  unmark(): Promise<void> {
    return this.#change(() => {
      for (const node of this.nodes) {
        delete node.label;
        delete node.proven;
        delete node.problem;
      }
    });
  }

  /** Of its Fairlead pod: that of its template. */
  #modeOn({ pods }: Node): string | undefined {
    const template = pods.get("fairlead")?.template;
    return template === this.#templates.get("fairlead") ? this.#installed : "an earlier one";
  }

  #seen({ name, label, proven: text, problem, fault, of, pods }: Node): NodeState {
    const proven = PROXIES.find((proxy) => text === provenText(proxy, this.#installed));
    const states = [...pods].map(([proxy, { age, template, restarts }]) => {
      const isReady = age >= READY_AT && !(fault === "never ready" && proxy === of);
      return [proxy, { ready: isReady, current: template === this.#templates.get(proxy), restarts }] as const;
    });
    return { name, ready: fault !== "not Ready", label, proven, problem, pods: Object.fromEntries(states) };
  }

  #reconcile(): void {
    for (const proxy of PROXIES) this.#roll(proxy);
    for (const node of this.nodes) {
      if (node.fault === "not Ready") continue;
      for (const [proxy, pod] of node.pods) {
        pod.age += 1;
        if (node.fault === "crashes" && proxy === node.of && pod.age > READY_AT) pod.restarts += 1;
      }
    }
  }

  /** Ends pods that are not wanted, starts those that are missing, and renews one of an earlier template. */
  #roll(proxy: ProxyName): void {
    const placement = this.#placements.get(proxy);
    const template = this.#templates.get(proxy) ?? 0;
    const running = this.nodes.filter(({ fault }) => fault !== "not Ready");
    for (const node of running) {
      const isWanted = placement !== undefined && isPlacedOn(proxy, placement, { label: node.label });
      if (!isWanted) node.pods.delete(proxy);
      else if (!node.pods.has(proxy)) node.pods.set(proxy, { age: 0, template, restarts: 0 });
    }
    const isDown = running.some(({ pods }) => (pods.get(proxy)?.age ?? READY_AT) < READY_AT);
    const old = running.find(({ pods }) => (pods.get(proxy)?.template ?? template) !== template);
    if (!isDown) old?.pods.set(proxy, { age: 0, template, restarts: 0 });
  }

  async #change(change: () => void): Promise<void> {
    this.#countDown();
    change();
    this.#demandProxies();
    this.#countDown();
  }

  #countDown(): void {
    this.killAfter -= 1;
    if (this.killAfter === 0) throw new Killed();
  }

  #demandProxies(): void {
    for (const node of [...this.nodes, { name: "a node to come", label: undefined }]) {
      const placed = [...this.#placements].some(([proxy, placement]) =>
        isPlacedOn(proxy, placement, { label: node.label }),
      );
      if (!placed) throw new Error(`${node.name} is to have no proxy at all`);
    }
  }

  #node(name: string): Node {
    const node = this.nodes.find((one) => one.name === name);
    if (node === undefined) throw new Error(`there is no ${name}`);
    return node;
  }
}

/** The proxy that was meant to serve each node, by its label. */
export function assignments(state: MigrationState): Readonly<Record<string, ProxyName>> {
  return Object.fromEntries(state.nodes.map((node) => [node.name, assignedProxy(state, node)]));
}

/** kube-proxy's objects as kubeadm writes them, as far as they are looked at. */
export const KUBE_PROXY = {
  metadata: { name: "kube-proxy", namespace: "kube-system", uid: "kp", generation: 1 },
  spec: {
    updateStrategy: { type: "RollingUpdate" },
    template: {
      spec: {
        nodeSelector: { "kubernetes.io/os": "linux" },
        containers: [
          {
            name: "kube-proxy",
            image: "registry.k8s.io/kube-proxy:v1.36.3",
            command: [
              "/usr/local/bin/kube-proxy",
              "--config=/var/lib/kube-proxy/config.conf",
              "--hostname-override=$(NODE_NAME)",
            ],
            volumeMounts: [{ name: "kube-proxy", mountPath: "/var/lib/kube-proxy" }],
          },
        ],
        volumes: [{ name: "kube-proxy", configMap: { name: "kube-proxy" } }],
      },
    },
  },
  status: { observedGeneration: 1 },
};

export const CONFIG_CONF = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection:
  kubeconfig: /var/lib/kube-proxy/kubeconfig.conf # of the account
clusterCIDR: 10.144.0.0/16
mode: nftables
iptables:
  masqueradeBit: null
winkernel:
  sourceVip: ""
`;

export const KUBECONFIG_CONF = `apiVersion: v1
kind: Config
clusters:
- cluster:
    certificate-authority: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
    server: https://cp.example:6443
  name: default
`;

export const CONFIG_MAP = { data: { "config.conf": CONFIG_CONF, "kubeconfig.conf": KUBECONFIG_CONF } };

export const API_SERVICE = { spec: { clusterIP: "10.96.0.1", clusterIPs: ["10.96.0.1", "fd00::1"] } };

export function kubeProxyWith(podSpec: object, flags: readonly string[] = []): typeof KUBE_PROXY {
  const { template } = KUBE_PROXY.spec;
  const [container] = template.spec.containers;
  const containers = [
    { ...container, command: [...(container?.command ?? []), ...flags] },
  ] as typeof template.spec.containers;
  return {
    ...KUBE_PROXY,
    spec: { ...KUBE_PROXY.spec, template: { spec: { ...template.spec, containers, ...podSpec } } },
  };
}

/** A clock on which a wait takes no time but its own: for code that does one thing after the other. */
export class InstantClock implements Clock {
  #elapsed = 0;

  now(): number {
    return this.#elapsed;
  }

  monotonic(): number {
    return this.#elapsed;
  }

  after(ms: number, run: () => void): () => void {
    this.#elapsed += ms;
    queueMicrotask(run);
    return () => {};
  }
}

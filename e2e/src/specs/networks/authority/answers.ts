import type { Client, Pod } from "@fairlead/lab/provider/cluster";
import { expectAnswers, type Target } from "../../expect.ts";
import { excludedNetwork, needsOwnLoadBalancer } from "../../multi-cni/untouched.ts";
import { KUBE_PROXY, withKubeProxy } from "../../operator.ts";
import { type Figures, needs, notIn, onlyIPv4, type Scene, type Spec } from "../../spec.ts";
import { describeAndLearn, openClusterDNS } from "./bystanders.ts";

const onlyOthers = notIn(["ipvs"], "ipvs mode cannot distinguish the clients of an address");

export const everyAnswer: Spec = {
  name: "the recipe for two networks: every client is answered by every service at every address",
  suite: "networks",
  about: ["endpoint-filter", "backend-iptables", "backend-nftables", "backend-userspace"],
  eachFamily: false,
  unfit: (shape) =>
    onlyOthers(shape) ?? needs("learn")(shape) ?? needsOwnLoadBalancer(shape) ?? onlyIPv4("its CIDRs are IPv4")(shape),
  run: async (scene) => {
    await describeAndLearn(scene, recipe(scene));
    const cells = await openTable(scene);
    for (const { from, target, by } of cells) await expectAnswers(from, target, { by });
    return { ...fairleadLines(cells), ...(await askKubeProxy(scene, cells)) };
  },
};

const REQUESTS = { count: 16, parallel: 8, timeoutMs: 3_000 } as const;

/** `multiCNI` as the recipe for Calico and kube-ovn has it. */
function recipe({ cluster, network }: Scene): object {
  const within = Object.values(excludedNetwork(cluster).podCIDRs);
  return {
    clusterCIDRsFrom: [{ source: "calico-ippools", within: Object.values(network.podCIDRs) }],
    excludeCIDRsFrom: [{ source: "kube-ovn-subnets", within }],
    excludedFrontends: "excluded-clients",
    serviceRules: [{ annotation: "ovn.kubernetes.io/vpc", notIn: [{ defaultVPC: true }], ownership: "foreign" }],
  };
}

/** The owners of a service's endpoints. */
const SERVICES = ["theirs", "ours", "mixed"] as const;
type ServiceName = (typeof SERVICES)[number] | "kube-dns";

/** One request of the table: a client, a service and which of its addresses. */
interface Cell {
  /** `our pod → ClusterIP` */
  readonly row: string;
  readonly service: ServiceName;
  readonly from: Client;
  readonly target: Target;
  /** The endpoints that have to answer, each of them. */
  readonly by: readonly Pod[];
}

/** What comes of a round of requests, whatever it is. */
async function answerOf({ from, target, service }: Cell): Promise<string> {
  const results = await from.send({ protocol: "TCP", ...target, ...REQUESTS });
  const servers = new Set(results.map((result) => (result.kind === "answer" ? result.server : "")));
  const [failed, ...more] = results.filter(({ kind }) => kind !== "answer");
  if (failed !== undefined) return `${1 + more.length} of ${results.length} failed (${failed.kind})`;
  return answeredBy(service, servers.size);
}

/** The only endpoint of a mixed service that answers is ours. */
function answeredBy(service: Cell["service"], endpoints: number): string {
  if (service !== "mixed") return "answered";
  return endpoints === 1 ? "by our endpoint" : "by both endpoints";
}

function lines(cells: readonly Cell[], answers: ReadonlyMap<Cell, string>): Figures {
  const rows = Object.entries(Object.groupBy(cells, ({ row }) => row));
  const text = (cell: Cell) => `${cell.service} ${answers.get(cell) ?? "not asked"}`;
  return Object.fromEntries(rows.map(([row, found = []]) => [row, found.map(text).join("; ")]));
}

function fairleadLines(cells: readonly Cell[]): Figures {
  return lines(cells, new Map(cells.map((cell) => [cell, answeredBy(cell.service, cell.by.length)])));
}

async function askKubeProxy(scene: Scene, cells: readonly Cell[]): Promise<Figures> {
  // It refuses several clusterCIDRs of a family.
  if (KUBE_PROXY === "" || scene.cluster.networks.filter(({ excluded }) => !excluded).length > 1) return {};
  const answers = new Map<Cell, string>();
  await withKubeProxy(scene, async () => {
    for (const cell of cells) answers.set(cell, await answerOf(cell));
  });
  const named = Object.entries(lines(cells, answers)).map(([row, text]) => [`kube-proxy: ${row}`, text] as const);
  return Object.fromEntries(named);
}

type Endpoints = Readonly<Record<ServiceName, readonly Pod[]>>;

/**
 * Services of both networks and a mixed one, each at every address that a Service can have, and the cluster's DNS in
 * the other network; a client of each kind.
 */
async function openTable(scene: Scene): Promise<readonly Cell[]> {
  const [first] = scene.nodes;
  const network = excludedNetwork(scene.cluster).name;
  const endpoints = await openEndpoints(scene);
  const [ownPod, theirPod] = await Promise.all([scene.pod({ node: first }), scene.pod({ node: first, network })]);
  const clients = { "our pod": ownPod, "their pod": theirPod, node: first, outside: scene.cluster.outside };
  const cells: Cell[] = [];
  for (const service of SERVICES) {
    const addresses = Object.entries(await openService(scene, service));
    for (const [client, from] of Object.entries(clients)) {
      for (const [address, target] of addresses) {
        const by = endpointsFor(endpoints, service, from === theirPod && INSIDE.has(address));
        cells.push({ row: `${client} → ${address}`, service, from, target, by });
      }
    }
  }
  const clusterIP = await openClusterDNS(scene, dnsLabel(scene));
  for (const [client, from] of Object.entries(clients)) {
    const target: Target = { to: clusterIP, port: 53, protocol: "UDP" };
    cells.push({ row: `${client} → kube-dns`, service: "kube-dns", from, target, by: endpoints["kube-dns"] });
  }
  return cells;
}

/** What the other network's own load balancer answers for its pods. */
const INSIDE: ReadonlySet<string> = new Set(["ClusterIP", "ClusterIP, UDP"]);

/** Fairlead uses our endpoints of a mixed service, the other network's load balancer all of them. */
function endpointsFor(endpoints: Endpoints, service: ServiceName, inside: boolean): readonly Pod[] {
  if (service !== "mixed" || inside) return endpoints[service];
  return endpoints.mixed.slice(0, 1);
}

/** Two of each; ours is the first of the mixed ones. */
async function openEndpoints(scene: Scene): Promise<Endpoints> {
  const { cluster, nodes } = scene;
  const [first, second] = nodes;
  const network = excludedNetwork(cluster).name;
  const dns = { namespace: "kube-system", node: second, network, labels: { app: dnsLabel(scene) } };
  const [near, far, theirNear, theirFar, mixedNear, mixedFar, resolver] = await Promise.all([
    scene.pod({ node: first, app: "ours" }),
    scene.pod({ node: second, app: "ours" }),
    scene.pod({ node: first, network, app: "theirs" }),
    scene.pod({ node: second, network, app: "theirs" }),
    scene.pod({ node: first, app: "mixed" }),
    scene.pod({ node: second, network, app: "mixed" }),
    cluster.startPod(dns),
  ]);
  scene.later(resolver.remove);
  return { ours: [near, far], theirs: [theirNear, theirFar], mixed: [mixedNear, mixedFar], "kube-dns": [resolver] };
}

async function openService(scene: Scene, app: string): Promise<Readonly<Record<string, Target>>> {
  const { cluster, family, nodes } = scene;
  const [first, second] = nodes;
  const [external, balancer] = [cluster.gateAddress(first, family), cluster.gateAddress(first, family)];
  const ports = [
    { name: "http", port: 80, protocol: "TCP" },
    { name: "dns", port: 53, protocol: "UDP" },
  ];
  const spec = { type: "LoadBalancer", selector: { app }, ports, externalIPs: [external] };
  const service = await scene.service(app, spec);
  await service.setIngress([balancer]);
  return {
    ClusterIP: { to: service.clusterIP, port: 80 },
    "ClusterIP, UDP": { to: service.clusterIP, port: 53, protocol: "UDP" },
    "node port": { to: second.addresses[family] ?? "", port: service.nodePort },
    "external IP": { to: external, port: 80 },
    "load balancer": { to: balancer, port: 80 },
  };
}

const dnsLabel = ({ namespace }: Scene) => `dns-${namespace}`;

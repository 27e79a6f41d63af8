import { fileURLToPath } from "node:url";
import { expectAnswers } from "../../expect.ts";
import { startTraffic, withoutFailure } from "../../faults/traffic.ts";
import { endpointAt } from "../../multi-cni/endpoint-at.ts";
import { excludedNetwork } from "../../multi-cni/networks.ts";
import { nearAndFar } from "../../near-and-far.ts";
import { able } from "../../needs.ts";
import type { Scene } from "../../scene.ts";
import { createService } from "../../service.ts";
import type { Figures } from "../../spec.ts";
import { make } from "../learning.ts";
import { CIDR } from "../open-others.ts";

const API_LOAD = fileURLToPath(new URL("../programs/api-load-main.ts", import.meta.url));
const PORTS = [{ port: 80 }];
const DNS_PORTS = [
  { name: "dns", port: 53, protocol: "UDP" },
  { name: "http", port: 80, protocol: "TCP" },
];
const TRAFFIC_MS = 15 * 60_000;

/** A service whose endpoint is in no network until the spec defines one: it shows that a decision was taken. */
export const CANARY = "canary";

/** Services that others aim at, and what they aim with. */
export interface Bystanders {
  readonly scene: Scene;
  /** A namespace whose name sorts before all of theirs. */
  readonly tenant: string;
  /** The pod CIDRs of our network and of the other one. */
  readonly pool: string;
  readonly theirCIDR: string;
  /** Endpoints of the cluster's DNS, of `web` and of the other network's service, the API server, a load balancer. */
  readonly dnsEndpoint: string;
  readonly webEndpoint: string;
  readonly theirEndpoint: string;
  readonly apiServer: string;
  readonly balancer: string;
  /** `namespace/name` → owner, which nothing may change. */
  readonly owners: Readonly<Record<string, string>>;
}

/**
 * The cluster's DNS, a service behind a load balancer, one of the other network, and a canary.
 *
 * @returns with `load`, which asks all but the other network's without a pause, and the API server by its ClusterIP
 */
export async function openBystanders(scene: Scene) {
  const { cluster, namespace, network } = scene;
  const [first, second] = scene.nodes;
  const { near, caller, by } = await nearAndFar(scene);
  const web = await scene.service("web", { selector: { app: "web" }, ports: PORTS });
  const balanced = await scene.service("balanced", { type: "LoadBalancer", selector: { app: "web" }, ports: PORTS });
  const balancer = cluster.gateAddress(first, "IPv4");
  await balanced.setIngress([balancer]);
  const theirs = excludedNetwork(cluster);
  const their = await scene.pod({ node: first, network: theirs.name, app: "theirs" });
  await scene.service("theirs", { selector: { app: "theirs" }, ports: PORTS });
  await scene.service(CANARY, { ports: PORTS });
  await cluster.api.create(
    endpointAt({ namespace, service: CANARY, family: "IPv4", address: CIDR.replace("0.0/16", "0.9") }),
  );
  const dns = await openDNS(scene);
  const tenant = `a-${namespace}`;
  await make(scene, { apiVersion: "v1", kind: "Namespace", metadata: { name: tenant } });
  const ours = ["kube-system/kube-dns", "default/kubernetes", `${namespace}/web`, `${namespace}/balanced`];
  await expectAnswers(caller, { to: web.clusterIP, port: 80 }, { by });
  await expectAnswers(cluster.outside, { to: balancer, port: 80 }, { by });
  await expectAnswers(caller, { to: dns.clusterIP, port: 53, protocol: "UDP" }, { by: [dns.pod] });
  const at: Bystanders = {
    ...{ scene, tenant, balancer },
    pool: network.podCIDRs.IPv4 ?? "",
    theirCIDR: theirs.podCIDRs.IPv4 ?? "",
    dnsEndpoint: dns.pod.addresses.IPv4 ?? "",
    webEndpoint: near.addresses.IPv4 ?? "",
    theirEndpoint: their.addresses.IPv4 ?? "",
    apiServer: new URL(cluster.apiServer.url).hostname,
    owners: { ...Object.fromEntries(ours.map((key) => [key, "ours"])), [`${namespace}/theirs`]: "foreign" },
  };
  const load = async () => {
    const ways = [
      { from: caller, to: dns.clusterIP, port: 53, protocol: "UDP" },
      { from: second, to: dns.clusterIP, port: 80 },
      { from: caller, to: web.clusterIP, port: 80 },
      { from: cluster.outside, to: balancer, port: 80 },
    ] as const;
    const traffic = startTraffic(ways, scene.later, TRAFFIC_MS);
    const api = await able(caller.startScript)(API_LOAD, [await apiClusterIP(scene), "443"]);
    return async (): Promise<Figures> => {
      const seen = withoutFailure(await traffic.stop());
      const { requests, failures }: ApiLoad = JSON.parse(await api.ask("counts"));
      if (requests === 0 || failures.length > 0) {
        throw new Error(`wanted answers of the API server; of ${requests} requests ${failures.join(", ")} failed`);
      }
      return { ...seen, "requests to the API": String(requests) };
    };
  };
  return { at, load };
}

interface ApiLoad {
  readonly requests: number;
  readonly failures: readonly string[];
}

async function openDNS(scene: Scene) {
  const { cluster, network, namespace } = scene;
  const app = `dns-${namespace}`;
  const [, node] = scene.nodes;
  const pod = await cluster.startPod({ namespace: "kube-system", node, network: network.name, labels: { app } });
  scene.later(pod.remove);
  const labels = { "k8s-app": "kube-dns" };
  const spec = { selector: { app }, ports: DNS_PORTS };
  const name = { name: "kube-dns", namespace: "kube-system" };
  const service = await createService(cluster.api, { ...name, family: "IPv4", spec, annotations: {}, labels });
  scene.later(service.remove);
  return { pod, clusterIP: service.clusterIP };
}

async function apiClusterIP({ cluster }: Scene): Promise<string> {
  const service = await cluster.api.get("/api/v1/namespaces/default/services/kubernetes");
  const { spec }: { readonly spec: { readonly clusterIP: string } } = JSON.parse(JSON.stringify(service));
  return spec.clusterIP;
}

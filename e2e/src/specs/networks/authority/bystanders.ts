/** Services that an attack must not change, and the configuration that they are served with. */

import { fileURLToPath } from "node:url";
import { fieldsOf, valueAt } from "@fairlead/base";
import { objectPath } from "@fairlead/lab/control-plane/api-client";
import { networkResource } from "@fairlead/lab/control-plane/network-resources";
import { expectAnswers } from "../../expect.ts";
import { startTraffic, withoutFailure } from "../../faults/stage.ts";
import { endpointAt, excludedNetwork, type OwnershipPage, ownershipPages } from "../../multi-cni/untouched.ts";
import { able, createService, type Figures, nearAndFar, type Scene } from "../../spec.ts";
import { allow, CIDR, install, ipPool, learnBy, make, makeVpc, subnet } from "../learning.ts";

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

const PORTS = [{ port: 80 }];

/** A service whose endpoint is in no network until the spec defines one: it shows that a decision was taken. */
const CANARY = "canary";

const TRAFFIC_MS = 15 * 60_000;

const API_LOAD = fileURLToPath(new URL("../programs/api-load-main.ts", import.meta.url));

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

/**
 * Waits until every agent decided the canary's owner, which takes in all that came before, and looks at the others in
 * the same answer.
 */
export async function expectOwners(at: Bystanders, canary: "ours" | "foreign"): Promise<void> {
  const key = `${at.scene.namespace}/${CANARY}`;
  await at.scene.until(`the canary to be ${canary} on every node`, async () => {
    const nodes = await pages(at);
    const moved = nodes.flatMap((services) => movedIn(at, services));
    if (moved.length > 0) throw new Error(`wanted no service to change hands; ${moved.join("; ")}`);
    const owners = nodes.map((services) => services.find(({ service }) => service === key)?.ownership ?? "unknown");
    return owners.every((owner) => owner === canary) ? undefined : owners.join(", ");
  });
}

/** Waits until they have their owners at first. */
export async function untilOwned(at: Bystanders): Promise<void> {
  await at.scene.until("each service to have its owner on every node", async () => {
    const moved = (await pages(at)).flatMap((services) => movedIn(at, services));
    return moved.length === 0 ? undefined : moved.join("; ");
  });
}

/** Defines the canary's network. @returns what takes it back */
export function canaryGoes({ scene }: Bystanders): Promise<() => Promise<void>> {
  return make(scene, subnet(CANARY, CIDR));
}

/** The default VPC where it once got another name: kube-ovn has both for the default one then. */
export const RENAMED_VPC = "main";

const OURS = { clusterCIDRsFrom: ["calico-ippools"], cidrChanges: { removalDelay: "1s" } };

/** `multiCNI` as the recipe has it, with all sources that are attacked; our own pools are believed anywhere. */
export function guarded({ cluster }: Scene): object {
  const theirs = Object.values(excludedNetwork(cluster).podCIDRs);
  return {
    ...OURS,
    excludeCIDRsFrom: [
      { source: "kube-ovn-subnets", within: [...theirs, CIDR] },
      { source: "nodes", within: ["10.251.0.0/16"] },
    ],
    excludedFrontends: "excluded-clients",
    serviceRules: [{ annotation: "ovn.kubernetes.io/vpc", notIn: [{ defaultVPC: true }], ownership: "foreign" }],
  };
}

/** The same without a prefix filter. */
export function unguarded(): object {
  return { ...OURS, excludeCIDRsFrom: ["kube-ovn-subnets"] };
}

/** The networks that are here describe themselves, and every agent learns them as its configuration says. */
export async function describeAndLearn(scene: Scene, multiCNI: object): Promise<void> {
  await describeNetworks(scene);
  await learnBy(scene, { multiCNI });
}

/** The CRDs, the roles, and the objects of the networks that are here. */
export async function describeNetworks(scene: Scene): Promise<void> {
  const { cluster, network } = scene;
  await allow(scene);
  for (const [group, kind] of [
    ["kubeovn.io", "Subnet"],
    ["kubeovn.io", "Vpc"],
    ["crd.projectcalico.org", "IPPool"],
    ["k8s.ovn.org", "UserDefinedNetwork"],
  ] as const) {
    await install(scene, networkResource(group, kind));
  }
  for (const name of ["ovn-cluster", RENAMED_VPC]) await makeVpc(scene, name, { default: true });
  await make(scene, subnet("ovn-default", Object.values(excludedNetwork(cluster).podCIDRs).join(",")));
  for (const [family, cidr] of Object.entries(network.podCIDRs)) {
    await make(scene, ipPool(`default-${family.toLowerCase()}`, cidr));
  }
}

const DNS_PORTS = [
  { name: "dns", port: 53, protocol: "UDP" },
  { name: "http", port: 80, protocol: "TCP" },
];

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
  return { pod, clusterIP: await openClusterDNS(scene, app) };
}

/**
 * kube-system/kube-dns over pods with that label. Whole Kubernetes has one, which has these pods while the spec lasts.
 *
 * @returns its ClusterIP
 */
export async function openClusterDNS({ cluster, later }: Scene, app: string): Promise<string> {
  const { api, kubernetes } = cluster;
  const where = { name: "kube-dns", namespace: "kube-system" };
  const labels = { "k8s-app": "kube-dns" };
  if (kubernetes === undefined) {
    const spec = { selector: { app }, ports: DNS_PORTS };
    const service = await createService(api, { ...where, family: "IPv4", spec, annotations: {}, labels });
    later(service.remove);
    return service.clusterIP;
  }
  const path = objectPath({ apiVersion: "v1", kind: "Service", metadata: where });
  const { ports, clusterIP } = fieldsOf(valueAt(await api.get(path), "spec"));
  later(async () => void (await api.patch(path, { spec: { selector: { ...labels, app: null }, ports } })));
  await api.patch(path, { spec: { selector: { "k8s-app": null, app }, ports: DNS_PORTS } });
  return String(clusterIP);
}

async function apiClusterIP({ cluster }: Scene): Promise<string> {
  const service = await cluster.api.get("/api/v1/namespaces/default/services/kubernetes");
  const { spec }: { readonly spec: { readonly clusterIP: string } } = JSON.parse(JSON.stringify(service));
  return spec.clusterIP;
}

async function pages({ scene }: Bystanders): Promise<readonly OwnershipPage["services"][]> {
  const all = await ownershipPages(scene.cluster);
  return all.map(({ services }) => services.filter(({ ipFamily }) => ipFamily === "IPv4"));
}

function movedIn({ owners }: Bystanders, services: OwnershipPage["services"]): readonly string[] {
  return Object.entries(owners).flatMap(([key, wanted]) => {
    const found = services.find(({ service }) => service === key);
    return found?.ownership === wanted ? [] : [`${key} is ${found?.ownership}, not ${wanted}: ${found?.why}`];
  });
}

/**
 * NetworkPolicies alongside the proxy: which of services' clients they let through. The program that enforces them was
 * written by others, and kube-proxy in the same place must give the same answers.
 */

import { type ApiObject, objectPath } from "@fairlead/lab/control-plane/api-client";
import { networkPoliciesProgram, startNetworkPolicies } from "@fairlead/lab/network-policies";
import type { Client, ClusterNode, Pod } from "@fairlead/lab/provider/cluster";
import { expectAnswers, expectLost, type Target } from "./expect.ts";
import { lackingKubeProxy, withKubeProxy } from "./operator.ts";
import { type Figures, notIn, type Scene, type ServiceHandle, type Spec } from "./spec.ts";

const NAME = "NetworkPolicies: by label, egress to endpoints, and clients whose address is kept or masqueraded";

const common = {
  suite: "network-policies",
  unfit: notIn(["userspace"], "in userspace mode the node asks for every client"),
} as const;

export const networkPolicies: readonly Spec[] = [
  { ...common, name: NAME, run: enforced },
  {
    ...common,
    name: `${NAME}, with kube-proxy`,
    unfit: (shape) => common.unfit(shape) ?? lackingKubeProxy(shape),
    run: (scene) => withKubeProxy(scene, enforced),
  },
];

/** A client's way to a pod through a service. */
interface Way {
  readonly from: Client;
  readonly target: Target;
  readonly by: Pod;
}

/** What a policy lets through, and what it does not. */
interface Case {
  readonly policy: object;
  readonly open: readonly Way[];
  readonly closed: readonly Way[];
}

async function enforced(scene: Scene): Promise<Figures> {
  const { api } = scene.cluster;
  const stage = await openStage(scene);
  const cases = casesOf(scene, stage);
  const ways = cases.flatMap(({ open, closed }) => [...open, ...closed]);
  await allOpen(ways);
  await startEverywhere(scene, stage.pods);
  for (const [at, { policy, open, closed }] of cases.entries()) {
    const metadata = { name: `case-${at}`, namespace: scene.namespace };
    const object: ApiObject = { apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", metadata, spec: policy };
    await api.create(object);
    // What is closed shows that the policy is in effect.
    await Promise.all(closed.map(({ from, target }) => expectLost(from, target)));
    await allOpen(open);
    await api.delete(objectPath(object));
  }
  await allOpen(ways);
  const count = (of: "open" | "closed") => String(cases.reduce((sum, one) => sum + one[of].length, 0));
  return { policies: String(cases.length), "ways open": count("open"), "ways closed": count("closed") };
}

/** One after the other: a guest has time for each. */
async function allOpen(ways: readonly Way[]): Promise<void> {
  for (const { from, target, by } of ways) await expectAnswers(from, target, { by: [by] });
}

async function startEverywhere({ cluster, later }: Scene, pods: readonly Pod[]): Promise<void> {
  const { apiServer, families, nodes } = cluster;
  const program = await networkPoliciesProgram(console.log);
  for (const node of nodes) {
    const own = pods.filter((pod) => pod.node.name === node.name);
    later(await startNetworkPolicies({ node, families, apiServer, program }, own));
  }
}

interface Stage {
  readonly web: Pod;
  readonly other: Pod;
  /** On each node one that policies name, and one that they do not. */
  readonly friends: readonly Pod[];
  readonly strangers: readonly Pod[];
  readonly pods: readonly Pod[];
  readonly atWeb: ServiceHandle;
  /** The same with policy Local. */
  readonly atKept: ServiceHandle;
  readonly atOther: ServiceHandle;
}

/** All endpoints are on the first node. */
async function openStage(scene: Scene): Promise<Stage> {
  const { nodes } = scene;
  const [first] = nodes;
  const clients = (app: string) => Promise.all(nodes.map((node) => scene.pod({ node, app })));
  const [web, other, friends, strangers] = await Promise.all([
    scene.pod({ node: first, app: "web" }),
    scene.pod({ node: first, app: "other" }),
    clients("friend"),
    clients("stranger"),
  ]);
  const service = (name: string, app: string, spec = {}) =>
    scene.service(name, { type: "NodePort", selector: { app }, ports: [{ port: 80 }], ...spec });
  const [atWeb, atKept, atOther] = await Promise.all([
    service("web", "web"),
    service("kept", "web", { externalTrafficPolicy: "Local" }),
    service("other", "other"),
  ]);
  return { web, other, friends, strangers, pods: [web, other, ...friends, ...strangers], atWeb, atKept, atOther };
}

const labeled = (app: string) => ({ podSelector: { matchLabels: { app } } });
const only = (address: string) => ({ ipBlock: { cidr: `${address}/${address.includes(":") ? 128 : 32}` } });

function casesOf({ cluster, family, nodes }: Scene, stage: Stage): readonly Case[] {
  const { web, other, friends, strangers, atWeb, atKept, atOther } = stage;
  const { outside } = cluster;
  const [first, second] = nodes;
  const addressOf = ({ addresses }: Pick<Client, "addresses">) => addresses[family] ?? "";
  const toWeb = (from: Client): Way => ({ from, target: { to: atWeb.clusterIP, port: 80 }, by: web });
  const toOther = (from: Client): Way => ({ from, target: { to: atOther.clusterIP, port: 80 }, by: other });
  const atNode = (node: ClusterNode, { nodePort: port }: ServiceHandle, source = addressOf(outside)): Way => ({
    from: outside,
    target: { to: addressOf(node), port, source },
    by: web,
  });
  const unknown = cluster.strangerAddresses[family] ?? "";
  return [
    // A node may always reach its own pods.
    {
      policy: { ...labeled("web"), ingress: [{ from: [labeled("friend")] }] },
      open: [...friends, first].map(toWeb),
      closed: [...strangers, second].map(toWeb),
    },
    {
      policy: { ...labeled("web"), policyTypes: ["Ingress"] },
      open: [toWeb(first)],
      closed: [...friends, ...strangers].map(toWeb),
    },
    {
      policy: { ...labeled("friend"), policyTypes: ["Egress"], egress: [{ to: [labeled("web")] }] },
      open: friends.map(toWeb),
      closed: friends.map(toOther),
    },
    // An endpoint's address takes the ClusterIP's place before policies are asked.
    {
      policy: { ...labeled("friend"), policyTypes: ["Egress"], egress: [{ to: [only(atWeb.clusterIP)] }] },
      open: strangers.map(toWeb),
      closed: friends.map(toWeb),
    },
    // Masqueraded are those that come in by another node.
    {
      policy: { ...labeled("web"), ingress: [{ from: [only(addressOf(outside))] }] },
      open: [atNode(first, atKept), atNode(first, atWeb)],
      closed: [atNode(first, atKept, unknown), atNode(first, atWeb, unknown), atNode(second, atWeb)],
    },
    {
      policy: { ...labeled("web"), ingress: [{ from: [only(addressOf(second))] }] },
      open: [atNode(second, atWeb), atNode(second, atWeb, unknown)],
      closed: [atNode(first, atKept), atNode(first, atWeb)],
    },
  ];
}

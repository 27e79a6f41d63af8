/** Services that belong to another network: nothing of them is in the kernel. */

import type { IPFamily } from "@fairlead/core";
import type { Argv, RunResult } from "@fairlead/kernel";
import { LET_PASS } from "@fairlead/lab/modes";
import type { Cluster, ClusterShape, NetworkShape } from "@fairlead/lab/provider/cluster";
import { expectAnswers, expectUntouched, until } from "../expect.ts";
import type { Scene } from "../spec.ts";

/** Waits until no node's rules say a word of the address: no jump, no REJECT, no entry of a set that leads to one. */
export async function expectNoTrace(
  { cluster }: { readonly cluster: { readonly nodes: readonly { readonly run: Run }[] } },
  address: string,
  withinMs?: number,
): Promise<void> {
  const nothing = async () => {
    const found = await Promise.all(cluster.nodes.map((node) => traces(node.run, address)));
    const lines = found.flat();
    return lines.length === 0 ? undefined : lines.join("\n");
  };
  await until(`no trace of ${address} on any node`, nothing, withinMs);
}

/**
 * Waits until every node's agent has seen the service's endpoints and leaves it to the other network. Before it sees
 * them the service is ours and refused, and before it knows the service at all, its address is untouched as well.
 */
export async function expectForeign({ cluster, namespace, family }: Scene, service: string): Promise<void> {
  const key = `${namespace}/${service}`;
  await until(`${key} to be the other network's on every node`, async () => {
    const known = (await ownershipPages(cluster)).map((page) => ownerIn(page, key, family));
    return known.every((owner) => owner === "foreign") ? undefined : known.join(", ");
  });
}

/** What an agent's `/ownership` says. */
export interface OwnershipPage {
  readonly services: readonly OwnershipRow[];
  readonly networks?: LearnedNetworks;
}

export interface OwnershipRow {
  readonly service: string;
  readonly ipFamily: string;
  readonly ownership: string;
  readonly why: string;
  readonly ownEndpoints: number;
  readonly excludedEndpoints: number;
}

export interface LearnedNetworks {
  readonly sources: readonly {
    readonly source: string;
    readonly state: string;
    readonly forbidden?: readonly string[];
  }[];
  readonly cidrs: readonly LearnedCIDR[];
}

export interface LearnedCIDR {
  readonly cidr: string;
  readonly side: string;
  readonly stage: string;
  readonly objects: readonly string[];
  /** No object defines it anymore. */
  readonly kept?: true;
  /** Why it is held or refused. */
  readonly why?: string;
}

/** Of every node. */
export function ownershipPages({ nodes }: Pick<Cluster, "nodes">): Promise<readonly OwnershipPage[]> {
  return Promise.all(nodes.map(async ({ agent }) => JSON.parse(await agent.get("/ownership"))));
}

/** The networks that Fairlead serves, and one that it ignores. */
export function excludedNetwork({ networks }: ClusterShape): NetworkShape {
  const found = networks.find(({ excluded }) => excluded);
  if (found === undefined) throw new Error("no network of this cluster is excluded");
  return found;
}

export function needsExcluded({ networks }: ClusterShape): string | undefined {
  return networks.some(({ excluded }) => excluded) ? undefined : "needs a second network, which Fairlead ignores";
}

export function needsOwnLoadBalancer({ networks }: ClusterShape): string | undefined {
  const some = networks.some(({ excluded, ownLoadBalancer }) => excluded && ownLoadBalancer);
  return some ? undefined : "needs an excluded network with a load balancer of its own";
}

export const OWNERSHIP = "fairlead.dev/ownership";

interface EndpointAt {
  readonly namespace: string;
  readonly service: string;
  readonly family: IPFamily;
  readonly address: string;
}

/** An EndpointSlice without a controller: one ready endpoint at port 80, whether a server is there or not. */
export function endpointAt({ namespace, service, family, address }: EndpointAt) {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: `${service}-by-hand`, namespace, labels: { "kubernetes.io/service-name": service } },
    addressType: family,
    ports: [{ port: 80, protocol: "TCP" }],
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
  };
}

const PORTS = [{ port: 80 }];

/**
 * A service of ours and one of the excluded network, each with an endpoint on the second node, and a pod of ours that
 * calls from the first. Resolves when every agent knows their owners: ours answers, theirs is ignored.
 */
export async function openOwners(scene: Scene) {
  const [first, second] = scene.nodes;
  const network = excludedNetwork(scene.cluster).name;
  const [ours, theirs, caller] = await Promise.all([
    scene.pod({ node: second, app: "ours" }),
    scene.pod({ node: second, network, app: "theirs" }),
    scene.pod({ node: first }),
  ]);
  const own = await scene.service("ours", { selector: { app: "ours" }, ports: PORTS });
  const foreign = await scene.service("theirs", { selector: { app: "theirs" }, ports: PORTS });
  await expectForeign(scene, foreign.name);
  const atOwn = { to: own.clusterIP, port: 80 };
  const atForeign = { to: foreign.clusterIP, port: 80 };
  await expectAnswers(caller, atOwn, { by: [ours] });
  await expectUntouched(caller, atForeign);
  return { network, ours, theirs, caller, own, foreign, atOwn, atForeign };
}

const DUMPS = [
  ["iptables-save"],
  ["ip6tables-save"],
  ["ipvsadm", "-Sn"],
  ["ipset", "save"],
  ["ip", "-oneline", "address", "show", "dev", "kube-ipvs0"],
  ["nft", "list", "table", "ip", "kube-proxy"],
  ["nft", "list", "table", "ip6", "kube-proxy"],
] as const;

function ownerIn({ services }: OwnershipPage, key: string, family: string): string {
  const found = services.find(({ service, ipFamily }) => service === key && ipFamily === family);
  if (found === undefined) return "unknown";
  return found.excludedEndpoints === 0 ? "without endpoints" : found.ownership;
}

type Run = (argv: Argv) => Promise<RunResult>;

async function traces(run: Run, address: string): Promise<readonly string[]> {
  // Tools of modes that are not there have nothing to say.
  const outputs = await Promise.all(
    DUMPS.map((argv) =>
      run(argv).then(
        ({ stdout }) => stdout.replace(LET_PASS, ""),
        () => "",
      ),
    ),
  );
  const word = new RegExp(`(^|[\\s[])${address.replaceAll(".", "\\.")}([\\s/\\]:,]|$)`);
  return outputs.flatMap((text) => text.split("\n")).filter((line) => word.test(line));
}

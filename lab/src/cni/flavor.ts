/** What a pod network is to the test ground, and which ones there are. */

import { readdir } from "node:fs/promises";
import type { IPFamily } from "@fairlead/core";
import type { Argv, Runner } from "@fairlead/kernel";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { type NeededProgram, PLAIN_TOOL } from "../support/machine.ts";
import { applyLines, route } from "../wire.ts";

/**
 * A pod network for clusters of namespaces. Each flavor is one folder here: `index.ts` exports `flavor`, README.md
 * says what is real and what stands in. Nothing else has to be reported of a new folder.
 *
 * Flavors are put side by side in one cluster, so everything a flavor makes on a node (interfaces, routing tables,
 * chains, tunnel ports) has names and numbers of its own, and its CIDRs meet no other program's.
 */
export interface CniFlavor {
  /** Its folder's name. */
  readonly name: string;
  /** Programs that it runs. What is missing is said before anything is started. */
  readonly programs: readonly Omit<NeededProgram, "by">[];
  /** Files below /dev that they open to read and write; default none. */
  readonly devices?: readonly string[];
  /** Its pods' CIDRs in the whole cluster; a family that is absent is one that its pods cannot have. */
  readonly podCIDRs: Readonly<Partial<Record<IPFamily, string>>>;
  /** It serves the services of its own pods itself: Fairlead is asked to ignore its CIDRs. */
  readonly ownLoadBalancer: boolean;
  /**
   * Endpoints of services that Fairlead proxies see the node in place of the pod that calls: its answers would go past
   * the node. Default false.
   */
  readonly hidesCallers?: boolean;
  /** The largest packet its pods may send. */
  readonly mtu: number;
  /**
   * Sets the network up on all nodes. What it starts goes through `ground.daemon`, or ends with the returned network.
   */
  install(ground: CniGround): Promise<PodNetwork>;
}

/** What a flavor is given to work with. */
export interface CniGround {
  readonly nodes: readonly CniNode[];
  /** Those of the cluster; all of them are among the flavor's own. */
  readonly families: readonly IPFamily[];
  /**
   * A folder of its own for sockets, databases and logs; `*.log` in it are kept when a spec fails. It is removed at the
   * end.
   */
  readonly folder: string;
  /** Starts a process that lives as long as the cluster, in the foreground: it must not detach itself. */
  daemon(daemon: Daemon): Promise<void>;
}

/** A node as its pod network sees it: a network namespace with `eth0` up, addressed, and default routes. */
export interface CniNode {
  readonly name: string;
  /** From 1; fit to be a part of addresses. At most 99. */
  readonly index: number;
  readonly addresses: Readonly<Partial<Record<IPFamily, string>>>;
  readonly namespace: NetworkNamespace;
  /** Runs programs inside. */
  readonly runner: Runner;
}

/**
 * A pod network that runs. Ending it takes down what did not go through `ground.daemon`; namespaces vanish by
 * themselves.
 */
export interface PodNetwork {
  /**
   * Connects a pod's empty namespace; afterwards `eth0` in it is up, addressed and the default route. May be called at
   * once for several pods.
   */
  attach(pod: PodToAttach): Promise<PodAddresses>;
  /** Takes back what `attach` did on the node. */
  detach(pod: PodToAttach): Promise<void>;
  /** Resolves once pods of all nodes reach each other. */
  ready(): Promise<void>;
  /** For the artifacts of a failed run: file name → what it knows (routes, flows, databases). */
  state(): Promise<Readonly<Record<string, string>>>;
  /**
   * Flavors with their own load balancer: starts what serves the API server's services to the flavor's own
   * pods. Called at most once, when there is an API server and Fairlead ignores the services of these pods.
   *
   * @param kubeconfig a file for a user who may read services and endpoint slices and annotate services, good on every
   *   node
   */
  followServices?(kubeconfig: string): Promise<void>;
  dispose(): Promise<void>;
}

export interface PodToAttach {
  /** Unique in the cluster, at most 11 characters of a-z, 0-9 and `-`, so that an interface can be named for it. */
  readonly name: string;
  readonly node: CniNode;
  /** From 1, unique among the pods of this network on this node; at most 200. Fit to be a part of addresses. */
  readonly index: number;
  readonly namespace: NetworkNamespace;
  readonly runner: Runner;
}

export type PodAddresses = Readonly<Partial<Record<IPFamily, string>>>;

/** What can be asked for: the folders alongside this file, and their variants. */
export async function flavorNames(): Promise<readonly string[]> {
  const entries = await readdir(new URL(".", import.meta.url), { withFileTypes: true });
  const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  const names = await Promise.all(
    folders.sort().map(async (folder) => {
      const { variants = {} } = await load(folder);
      return [folder, ...Object.keys(variants).map((variant) => `${folder}:${variant}`)];
    }),
  );
  return names.flat();
}

/** @param name one of `flavorNames` */
export async function loadFlavor(name: string): Promise<CniFlavor> {
  const [folder = name, variant] = name.split(":");
  const { flavor, variants = {} } = await load(folder);
  return variant === undefined ? flavor : (variants[variant] ?? flavor);
}

interface Daemon {
  readonly node: CniNode;
  /** Of its log file, `NAME.log` in the flavor's folder. Unique there. */
  readonly name: string;
  readonly argv: Argv;
  readonly env?: Readonly<Record<string, string>>;
}

/** What a flavor's folder exports. */
interface FlavorModule {
  readonly flavor: CniFlavor;
  /** Other ways of the same network, asked for as `FOLDER:VARIANT`; they have the flavor's name. */
  readonly variants?: Readonly<Record<string, CniFlavor>>;
}

function load(folder: string): Promise<FlavorModule> {
  return import(new URL(`${folder}/index.ts`, import.meta.url).href);
}

/** The addresses of a pod network in which every node has a subnet of its own, which follows from the node's number. */
export interface NodeSubnets {
  /** In the whole cluster: a /16 and a /48. */
  readonly podCIDRs: Readonly<Record<IPFamily, string>>;
  readonly length: Readonly<Record<IPFamily, number>>;
  /** As a CIDR. */
  subnet(family: IPFamily, node: number): string;
  /**
   * The address of a host in a node's subnet: 0 is the subnet itself, 1 its gateway if it has one, pods come from 11
   * on.
   */
  address(family: IPFamily, node: number, host: number): string;
  /** @param index of the pod on its node, from 1 */
  pod(family: IPFamily, node: number, index: number): string;
}

export const FIRST_POD = 10;

/**
 * @param ipv4 the first two numbers, `10.143`
 * @param ipv6 the first 48 bits with `::` after them, `fd00:143::`
 * @param ipv6Length of a node's subnet
 */
export function nodeSubnets(ipv4: string, ipv6: string, ipv6Length = 112): NodeSubnets {
  const length = { IPv4: 24, IPv6: ipv6Length };
  const inSubnet: Readonly<Record<IPFamily, (node: number, host: number) => string>> = {
    IPv4: (node, host) => `${ipv4}.${node}.${host}`,
    IPv6: (node, host) => `${ipv6}${node}:${host.toString(16)}`,
  };
  return {
    podCIDRs: { IPv4: `${ipv4}.0.0/16`, IPv6: `${ipv6}/48` },
    length,
    subnet: (family, node) => `${inSubnet[family](node, 0)}/${length[family]}`,
    address: (family, node, host) => inSubnet[family](node, host),
    pod: (family, node, index) => inSubnet[family](node, FIRST_POD + index),
  };
}

/** Nodes on one link: every other node is the gateway to its subnet, and nothing is wrapped. */
export async function routeToOthers(
  node: CniNode,
  others: readonly CniNode[],
  family: IPFamily,
  { subnet }: NodeSubnets,
): Promise<void> {
  await applyLines(
    node.runner,
    others.flatMap(({ index, addresses }) => {
      const via = addresses[family];
      return via === undefined ? [] : [route(subnet(family, index), { via, dev: "eth0" })];
    }),
  );
}

export const MULTICAST: Readonly<Record<IPFamily, string>> = { IPv4: "224.0.0.0/4", IPv6: "ff00::/8" };

/**
 * What most CNI plugins do on a node: packets of pods to anywhere else get the node's address. A chain of the flavor's
 * own, alongside the proxy's.
 */
export async function masqueradeOutgoing(
  runner: Runner,
  family: IPFamily,
  { name, podCIDRs }: Pick<CniFlavor, "name" | "podCIDRs">,
): Promise<void> {
  const pods = podCIDRs[family];
  if (pods === undefined) return;
  const chain = `CNI-${name.toUpperCase()}`;
  await runner.run([`${PLAIN_TOOL[family]}-restore`, "--noflush"], {
    input: [
      "*nat",
      `:${chain} - [0:0]`,
      `-A ${chain} -d ${pods} -j RETURN`,
      `-A ${chain} ! -d ${MULTICAST[family]} -j MASQUERADE`,
      `-A POSTROUTING -s ${pods} -j ${chain}`,
      "COMMIT\n",
    ].join("\n"),
  });
}

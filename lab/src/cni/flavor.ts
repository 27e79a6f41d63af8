/** What a pod network is to the test ground, and which ones there are. */

import { readdir } from "node:fs/promises";
import type { IPFamily } from "@fairlead/core";
import type { Argv, Runner } from "@fairlead/kernel";
import type { NetworkNamespace } from "@fairlead/kernel/netns";

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
  readonly programs: readonly NeededProgram[];
  /** Files below /dev that they open to read and write; default none. */
  readonly devices?: readonly string[];
  /** Its pods' CIDRs in the whole cluster; a family that is absent is one that its pods cannot have. */
  readonly podCIDRs: Readonly<Partial<Record<IPFamily, string>>>;
  /** It serves the services of its own pods itself: Fairlead is asked to leave its CIDRs alone. */
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
   *
   * @throws Error that says what failed
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
   * Flavors with their own load balancer: starts what has it serve services to its own pods, as the API server tells
   * of them. Called at most once, when there is an API server and Fairlead leaves the services of these pods alone.
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

interface NeededProgram {
  readonly program: string;
  /** The Debian package that brings it. */
  readonly debian: string;
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

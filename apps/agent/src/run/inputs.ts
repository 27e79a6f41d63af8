/** What the plan is made from, and what the first sync waits for. */

import { type Clock, errorChainText, familyOf, IP_FAMILIES, inAnyOf, isLoopback, parseAddress } from "@fairlead/base";
import type { IPFamily, NodeState } from "@fairlead/core";
import {
  familyConflicts,
  type NodeIPs,
  nodeExclusions,
  type PrimaryFamily,
  type ProxySubscriptions,
  ruleAnnotations,
  subscriptions,
  withOtherNodes,
} from "@fairlead/intake";
import type { NodeAddress, ServiceDeviceChange, WatchOptions } from "@fairlead/kernel";
import type { OtherSubscription } from "@fairlead/watch";
import type { Kernel } from "../kernel.ts";
import { logSource } from "../problems.ts";
import type { SyncKind } from "../sync/sync-loop.ts";
import type { Agent, AgentParts } from "./parts.ts";

/** What inputs need alongside the agent. */
interface Following {
  readonly eligibility: NodeEligibility;
  readonly signal: AbortSignal;
  /** Called when the agent cannot go on. */
  readonly fail: (reason: string) => void;
}

/**
 * Follows all that the rules depend on, each until the signal aborts: the node's addresses, the objects, the networks.
 * The first sync waits for the prerequisites; after it, each change asks for another.
 */
export function followInputs(parts: AgentParts, agent: Agent, following: Following): void {
  const { signal, fail } = following;
  const onReady = (without: readonly Prerequisite[]) => {
    const refused = whyRefused(parts, agent);
    if (refused === undefined) beginSyncs(parts, agent, without);
    else fail(refused);
  };
  const readiness = new Readiness({ clock: parts.clock, needs: prerequisites(parts), onReady });
  const request = (kind: SyncKind) => {
    if (readiness.ready) requestSync(parts, agent, kind);
  };
  const fatal = (what: string) => (error: unknown) => fail(`${what}: ${errorChainText(error)}`);
  parts.onFullSyncAsked?.(() => request("full"));
  followNodeAddresses(parts, agent, readiness, request, signal).catch(fatal("node addresses cannot be followed"));
  const onNode = nodeFollower(parts, agent, readiness, request, following);
  const intake = subscribe(parts, agent, readiness, request, onNode);
  agent.delay.start(() => request("partial"));
  agent.networks?.start({
    onFirst: () => readiness.known("networks"),
    onChange: (decision) => {
      if (agent.inputs.setNetworks(decision)) request("partial");
    },
  });
  const onReport = logSource({ log: parts.log, serviceAddress: (address) => isServiceAddress(agent, address) });
  const source = parts.source(onReport, agent.metrics.requests);
  const others = otherSubscriptions(parts, agent, readiness, request);
  source.run({ ...intake, ...(others.length > 0 && { others }) }, signal).catch(fatal("objects cannot be followed"));
}

/**
 * What the first sync may have to wait for: the complete lists, the first listing of this node's addresses, and of the
 * own Node its object, its addresses and its podCIDRs, the addresses of the other Nodes, and the first decision about
 * learned networks.
 */
export type Prerequisite =
  | "services"
  | "endpointSlices"
  | "addresses"
  | "node"
  | "nodeAddresses"
  | "otherNodes"
  | "podCIDRs"
  | "networks";

interface ReadinessOptions {
  /** All that is waited for. */
  readonly needs: readonly Prerequisite[];
  readonly clock: Pick<Clock, "after">;
  /** Called once: the first sync may be made. `without` is what has not come. */
  readonly onReady: (without: readonly Prerequisite[]) => void;
}

/** These may never come, and there is something to serve without them. */
const OPTIONAL: ReadonlySet<Prerequisite> = new Set(["node", "nodeAddresses", "otherNodes"]);

/** Milliseconds that everything else waits for those; kube-proxy waits as long for the Node's addresses. */
const GRACE_MS = 30_000;

/**
 * Reports once when the first sync may be made. What rules were made without would be missing in them until the next
 * sync.
 */
export class Readiness {
  readonly #options: ReadinessOptions;
  readonly #missing: Set<Prerequisite>;
  #ready = false;
  #waiting = false;

  constructor(options: ReadinessOptions) {
    this.#options = options;
    this.#missing = new Set(options.needs);
  }

  get ready(): boolean {
    return this.#ready;
  }

  /** This has come. */
  known(prerequisite: Prerequisite): void {
    this.#missing.delete(prerequisite);
    if (this.#ready) return;
    if (this.#missing.size === 0) this.#notify();
    else if (!this.#waiting && [...this.#missing].every((one) => OPTIONAL.has(one))) {
      this.#waiting = true;
      this.#options.clock.after(GRACE_MS, () => this.#notify());
    }
  }

  #notify(): void {
    if (this.#ready) return;
    this.#ready = true;
    this.#options.onReady([...this.#missing]);
  }
}

/** Whether this node should get traffic from load balancers, as its Node object says. */
export class NodeEligibility {
  readonly #needsNode: boolean;
  #node: NodeState | undefined;

  /** @param needsNode without a Node object the node is not eligible, as upstream; manifests may do without one */
  constructor(needsNode: boolean) {
    this.#needsNode = needsNode;
  }

  set(node: NodeState | undefined): void {
    this.#node = node;
  }

  get eligible(): boolean {
    return this.#node === undefined ? !this.#needsNode : !this.#node.goingAway;
  }
}

/** Gives the node's addresses now and after each change, until the signal of `watched` aborts. */
export async function followAddresses(
  kernel: Pick<Kernel, "addresses" | "sourceAddress">,
  watched: WatchOptions,
  onAddresses: (addresses: readonly string[], kernelIPs: NodeIPs) => void,
): Promise<void> {
  for await (const found of kernel.addresses.watch(watched)) {
    const ips: Partial<Record<IPFamily, string>> = {};
    for (const family of IP_FAMILIES) {
      const ip = (await kernel.sourceAddress(family)) ?? firstGlobal(found, family);
      if (ip !== undefined) ips[family] = ip;
    }
    onAddresses(
      found.map(({ address }) => address),
      ips,
    );
  }
}

const OWNERS = { bindAddress: "of bindAddress", node: "of the Node's first address", kernel: "of this node" } as const;

/** Why a node with this primary family cannot be served; undefined: it can. The other family may be left out. */
export function whyUnserved(
  { family, source, address = "none is known" }: PrimaryFamily,
  unserved: ReadonlyMap<IPFamily, string>,
): string | undefined {
  const reason = unserved.get(family);
  if (reason === undefined) return undefined;
  return `${family}, the primary family (${OWNERS[source]}: ${address}), cannot be served: ${reason}`;
}

/**
 * Whether an API server's address is that of a Service. Before the first sync the cluster's Services are unknown, so
 * they are recognized by what stands for them: the variable that kubelet sets in pods; and the form of the `kubernetes`
 * Service, the first address of a private range, which a real API server may have as well.
 *
 * @param known whether a Service with this ClusterIP has been seen
 * @returns why, to be read after the address; undefined: it is not
 */
export function serviceAddressReason(
  address: string,
  known: (address: string) => boolean,
  env: Readonly<Record<string, string | undefined>>,
): string | undefined {
  if (known(address)) return "is the address of a Service";
  if (env["KUBERNETES_SERVICE_HOST"] === address) return "is the Service address that pods are given";
  if (parseAddress(address) === undefined) return undefined;
  const first = familyOf(address) === "IPv6" ? address.endsWith("::1") : address.endsWith(".0.1");
  return first && isPrivate(address) ? "may be the address of a Service" : undefined;
}

type Request = (kind: SyncKind) => void;

function followNodeAddresses(
  { kernel, isForeignChange }: AgentParts,
  { inputs, loop }: Agent,
  readiness: Readiness,
  request: Request,
  signal: AbortSignal,
): Promise<void> {
  const watched = {
    signal,
    ...(isForeignChange && {
      onServiceDevice: (change: ServiceDeviceChange) => {
        if (readiness.ready && isForeignChange(change)) loop.requestCheck();
      },
    }),
  };
  return followAddresses(kernel, watched, (addresses, ips) => {
    if (inputs.setAddresses(addresses, ips)) request("partial");
    readiness.known("addresses");
  });
}

/** The own Node: whether it is going away, its addresses, which may come late and change, and its podCIDRs. */
function nodeFollower(
  parts: AgentParts,
  { inputs }: Agent,
  readiness: Readiness,
  request: Request,
  { eligibility, signal, fail }: Following,
): (node: NodeState | undefined) => void {
  const podCIDRs = followPodCIDRs(parts, readiness, signal, fail);
  return (node) => {
    eligibility.set(node);
    if (node === undefined) return;
    if (inputs.setNode(node)) request("partial");
    podCIDRs?.see(node);
    if (node.addresses.length === 0) return;
    readiness.known("nodeAddresses");
    const unserved = whyUnserved(inputs.primaryFamily, parts.unserved);
    if (unserved !== undefined) fail(unserved);
  };
}

function subscribe(
  { config, mode }: AgentParts,
  { state, problems, syncer, inputs, networks }: Agent,
  readiness: Readiness,
  request: Request,
  onNode: (node: NodeState | undefined) => void,
): ProxySubscriptions {
  let announced = false;
  return subscriptions({
    loopbackEndpoints: config.userspace.only,
    serviceProxyName: config.serviceProxyName,
    annotations: ruleAnnotations(config, mode.semantics),
    state,
    problems,
    onChange() {
      // The lists have begun to come: the kernel is read meanwhile.
      if (!announced && !readiness.ready) syncer.prepare();
      announced = true;
      request("partial");
    },
    onNode,
    // Without them there is only no drop of packets to addresses that no service has: nothing waits for them.
    onServiceCIDRs:
      mode.needs.serviceCIDRs || networks !== undefined
        ? (cidrs) => {
            networks?.setServiceCIDRs(cidrs);
            if (inputs.setServiceCIDRs(cidrs)) request("partial");
          }
        : undefined,
    onSynced(resource) {
      readiness.known(resource);
      networks?.synced(resource);
    },
  });
}

/** What is followed alongside Services, EndpointSlices and the own Node. */
function otherSubscriptions(
  { mode, nodeName }: AgentParts,
  { inputs, networks }: Agent,
  readiness: Readiness,
  request: Request,
): readonly OtherSubscription[] {
  const subscribed = networks?.subscriptions ?? [];
  if (!mode.needs.otherNodes) return subscribed;
  return withOtherNodes(subscribed, {
    nodeName,
    onAddresses(addresses) {
      if (inputs.setOtherNodes(addresses)) request("partial");
    },
    onKnown: () => readiness.known("otherNodes"),
  });
}

function isServiceAddress({ planner, families }: Agent, address: string): string | undefined {
  const known = families.some((family) => planner.lookup(family).at("TCP", address, 443) !== undefined);
  return serviceAddressReason(address, () => known, process.env);
}

/** What the rules cannot be made without. Manifests may do without a Node: then nothing is local. */
function prerequisites({ config, networks, mode }: AgentParts): readonly Prerequisite[] {
  const fromNode = config.manifests === undefined;
  return [
    "services",
    "endpointSlices",
    "node",
    // A service may choose among them for its node ports; they say which family has to be served, too.
    "addresses",
    ...(fromNode && config.nodePortAddresses.includes("primary") ? (["nodeAddresses"] as const) : []),
    ...(fromNode && config.detectLocal.kind === "node-cidr" ? (["podCIDRs"] as const) : []),
    ...(networks === undefined ? [] : (["networks"] as const)),
    ...(mode.needs.otherNodes ? (["otherNodes"] as const) : []),
  ];
}

/**
 * Why this node must not be served as it is configured; undefined: it may. What is only odd in the configuration is
 * logged.
 */
function whyRefused({ config, unserved, log }: AgentParts, agent: Agent): string | undefined {
  const { families: served, inputs } = agent;
  const { primaryFamily: primary, node } = inputs;
  const reason = whyUnserved(primary, unserved);
  if (reason !== undefined) return reason;
  const podCIDRs = node?.podCIDRs ?? [];
  const { fatal, warnings } = familyConflicts({ config, primary: primary.family, served, podCIDRs });
  for (const warning of [...warnings, ...nodeExclusions(config, node?.addresses ?? [])]) log.warn(warning);
  return fatal.length === 0 ? undefined : fatal.join("; ");
}

/** All prerequisites are there, or do not come: the first sync, and from now on the others. */
function beginSyncs(
  { clock, log, nodeName }: AgentParts,
  { families, health, metrics, loop, state }: Agent,
  without: readonly Prerequisite[],
): void {
  if (without.length > 0) {
    log.warn("Node object not received; serving without its zone and with the kernel's source address", {
      node: nodeName,
      missing: without.join(","),
    });
  }
  log.verbose(2, "All objects received; writing rules", { serviceChanges: state.serviceChanges.total });
  for (const family of families) {
    health.started(family);
    metrics.sync.lastQueued.set({ ip_family: family }, clock.now() / 1000);
  }
  loop.start();
}

/** Has the loop run a sync when its time comes; health and metrics count from now on. */
function requestSync({ clock }: AgentParts, { families, health, metrics, loop }: Agent, kind: SyncKind): void {
  for (const family of families) {
    health.queued(family);
    metrics.sync.lastQueued.set({ ip_family: family }, clock.now() / 1000);
  }
  loop.request(kind);
}

/** Milliseconds that kube-proxy waits for the own Node to be given its podCIDRs. */
const POD_CIDRS_TIMEOUT_MS = 300_000;

/**
 * The own Node's podCIDRs, where local traffic is known by them; undefined elsewhere.
 *
 * @param fail called when they change, or have not come after `POD_CIDRS_TIMEOUT_MS`
 */
function followPodCIDRs(
  { config, clock, nodeName }: AgentParts,
  readiness: Readiness,
  signal: AbortSignal,
  fail: (reason: string) => void,
): PodCIDRs | undefined {
  if (config.detectLocal.kind !== "node-cidr") return undefined;
  const podCIDRs = new PodCIDRs({
    onKnown: () => readiness.known("podCIDRs"),
    onChanged: (before, after) =>
      fail(`the podCIDRs of Node ${nodeName} changed from ${before.join(",")} to ${after.join(",") || "none"}`),
  });
  if (config.manifests === undefined) {
    const late = () => fail(`Node ${nodeName} was given no podCIDRs, which detectLocalMode NodeCIDR needs`);
    const cancel = clock.after(POD_CIDRS_TIMEOUT_MS, () => podCIDRs.known || late());
    signal.addEventListener("abort", cancel);
  }
  return podCIDRs;
}

interface PodCIDRsEvents {
  readonly onKnown: () => void;
  /** They are not what the rules were begun with. */
  readonly onChanged: (before: readonly string[], after: readonly string[]) => void;
}

/**
 * The own Node's podCIDRs, by which detectLocalMode NodeCIDR knows local traffic. As for kube-proxy, the first ones
 * hold for the life of the process.
 */
class PodCIDRs {
  readonly #events: PodCIDRsEvents;
  #first: readonly string[] = [];

  constructor(events: PodCIDRsEvents) {
    this.#events = events;
  }

  get known(): boolean {
    return this.#first.length > 0;
  }

  see({ podCIDRs }: NodeState): void {
    if (this.known) {
      if (podCIDRs.join() !== this.#first.join()) this.#events.onChanged(this.#first, podCIDRs);
    } else if (podCIDRs.length > 0) {
      this.#first = podCIDRs;
      this.#events.onKnown();
    }
  }
}

/** On a node without a default route: its first address that is meant for others. */
function firstGlobal(addresses: readonly NodeAddress[], family: IPFamily): string | undefined {
  return addresses.find((one) => one.family === family && one.up && one.scope === "global" && !isLoopback(one.address))
    ?.address;
}

const isPrivate = inAnyOf(["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"]);

/** The cluster as the console follows it: objects, nodes, plans and the rows that come of them. */

import { IP_FAMILIES, nextTurn } from "@fairlead/base";
import {
  ClusterState,
  type ClusterView,
  type IPFamily,
  type NodeState,
  type OwnershipDecision,
  type Planner,
  type ServiceKey,
} from "@fairlead/core";
import type { PlannedNode } from "@fairlead/inspect";
import { MirroredSlices } from "@fairlead/intake";
import type { ObjectSource } from "@fairlead/watch";
import type { OwnerChange, ServiceAnswer, ServiceRow } from "../protocol.ts";
import { followObjects, Learning, type UnusableObjects } from "./follow.ts";
import { type AgentSetup, Plans } from "./plans.ts";
import { serviceRow } from "./rows.ts";

interface ClusterOptions {
  /** How the agents are set up; `setSetup` says it of a node. */
  readonly setup: AgentSetup;
  /** The node that the list looks from; undefined: the first one by name. */
  readonly nodeName: string | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Takes what cannot be used of the objects. */
  readonly unusable: Pick<UnusableObjects, "take">;
  readonly onServices: (rows: readonly ServiceRow[], gone: readonly ServiceKey[]) => void;
  /** A node that came, changed or (undefined) went. */
  readonly onNode: (name: string, node: NodeState | undefined) => void;
  /** Whether Nodes may be listed, whenever that is known. */
  readonly onNodesForbidden?: (are: boolean) => void;
}

/** The objects as they are now, and the plans of the nodes in view. */
export class LiveCluster {
  readonly state = new ClusterState();
  /** What OVN-Kubernetes mirrors for Services of user-defined networks. */
  readonly mirrored = new MirroredSlices();
  readonly #options: ClusterOptions;
  readonly #nodes = new KnownNodes((name) => name === this.nodeName);
  readonly #turns = new SerialQueue();
  readonly #plans: Plans;
  readonly #learning: Learning | undefined;
  readonly #ready = Promise.withResolvers<void>();
  readonly #owners = new OwnerHistory();
  readonly #startedAt: number;
  #source: ObjectSource | undefined;
  #begun = false;
  #updating = false;
  #changedAt: number;

  constructor(options: ClusterOptions) {
    const { setup } = options;
    this.#options = options;
    this.#learning = setup.networks && new Learning(setup.networks, this.state);
    this.#plans = new Plans({
      setup,
      state: this.state,
      mirrored: this.mirrored,
      nodeOf: (name) => this.#nodes.of(name),
      nodes: () => this.#nodes.all,
      learned: () => this.#learning?.now(),
    });
    this.#plans.first = options.nodeName ?? "";
    this.#changedAt = options.now();
    this.#startedAt = this.#changedAt;
  }

  /** Those that there are. */
  get nodes(): ReadonlyMap<string, NodeState> {
    return this.#nodes.all;
  }

  /** The node that the list looks from. */
  get nodeName(): string {
    return this.#plans.first;
  }

  /** Whether the node that the list looks from was deleted meanwhile: its plan is by what was known of it. */
  get nodeDeleted(): boolean {
    return this.#nodes.isDeleted;
  }

  /** When the last change of an object was taken in. */
  get changedAt(): number {
    return this.#changedAt;
  }

  /** Resolves when all objects are known and planned for the first time. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Where the objects come from: what is not followed can be read once. */
  get source(): ObjectSource {
    if (this.#source === undefined) throw new Error("no objects are followed yet");
    return this.#source;
  }

  /** What the agents learn of networks; undefined: nothing. */
  get learning(): Pick<Learning, "now" | "cidrs"> | undefined {
    return this.#learning;
  }

  /** Follows the objects until the signal aborts, or the source ends. */
  follow(source: ObjectSource, signal: AbortSignal): Promise<void> {
    const learning = this.#learning;
    this.#source = source;
    const to = {
      state: this.state,
      mirrored: this.mirrored,
      onMirrored: (service: ServiceKey) => {
        if (this.#begun) this.#publish([service]);
      },
      setup: this.#options.setup,
      unusable: this.#options.unusable,
      onChange: () => void this.#changed(),
      onNode: (name: string, node: NodeState | undefined) => this.#node(name, node),
      onNodesForbidden: this.#options.onNodesForbidden ?? (() => {}),
      onServiceCIDRs: (cidrs: readonly string[]) => this.#plans.setServiceCIDRs(cidrs),
      onNetworks: () => void this.#decided(),
      onComplete: () => void this.#begin(),
      ...(learning && { learning }),
    };
    return followObjects(source, to, signal).finally(() => learning?.live.stop());
  }

  /** What a node's own interfaces have, which counts from now on in place of what its Node object says. */
  setAddresses(nodeName: string, addresses: readonly string[]): void {
    this.#plans.setAddresses(nodeName, addresses);
  }

  /** How a node's own agent is set up, which counts from now on in place of what the others have. */
  setSetup(nodeName: string, setup: AgentSetup): void {
    if (this.#plans.setSetup(nodeName, setup) && nodeName === this.nodeName) void this.#renew();
  }

  setupOf(nodeName: string): AgentSetup {
    return this.#plans.setupOf(nodeName);
  }

  /** The plan of a node, made when it is asked for the first time. Nothing changes it while the work goes on. */
  async withPlan<T>(nodeName: string, work: (planned: PlannedNode) => T | Promise<T>): Promise<T> {
    await this.ready;
    return this.#turns.run(async () => work(await this.#plans.of(nodeName)));
  }

  ownersOf(service: ServiceKey): ServiceAnswer["owners"] {
    return { since: this.#startedAt, changes: this.#owners.of(service) };
  }

  async *rows(portion: number): AsyncGenerator<readonly ServiceRow[], void, void> {
    let rows: ServiceRow[] = [];
    for (const key of [...this.state.keys()]) {
      const row = this.#row(key);
      if (row !== undefined) rows.push(row);
      if (rows.length < portion) continue;
      yield rows;
      rows = [];
      await nextTurn();
    }
    if (rows.length > 0) yield rows;
  }

  async #begin(): Promise<void> {
    if (this.nodeName === "") this.#plans.first = someNode(this.nodes, this.state);
    this.#begun = true;
    // The first plan has everything that is there now, and the first decision has seen it.
    this.#learning?.live.syncBegins();
    const { services } = this.state.takeDirty();
    this.#learning?.live.takeConcerned();
    await this.#turns.run(() => this.#plans.of(this.nodeName));
    this.#ready.resolve();
    void this.#see(services);
  }

  #node(name: string, node: NodeState | undefined): void {
    const { isChanged, isOutdated } = this.#nodes.take(name, node);
    if (isOutdated) this.#plans.outdate(name);
    if (isChanged) this.#plans.outdateOthers(name);
    if (isChanged) this.#options.onNode(name, node);
  }

  /** Changes that come close together are planned at once. */
  async #changed(): Promise<void> {
    this.#changedAt = this.#options.now();
    if (this.#updating) return;
    this.#updating = true;
    await this.ready;
    await nextTurn();
    await this.#turns.run(async () => {
      this.#updating = false;
      this.#learning?.live.syncBegins();
      const { services } = this.state.takeDirty();
      await this.#take(services, () => this.#plans.replan(services));
      void this.#see(services);
    });
  }

  /** Every service may have another owner than in the plan before. */
  async #renew(): Promise<void> {
    if (!this.#begun) return;
    const services = new Set(this.state.keys());
    await this.#turns.run(() => this.#take(services, async () => void (await this.#plans.of(this.nodeName))));
  }

  /** Other CIDRs of networks may count. */
  async #decided(): Promise<void> {
    const learning = this.#learning;
    if (!this.#begun || learning === undefined) return;
    await this.#turns.run(async () => {
      this.#changedAt = this.#options.now();
      const concerned = learning.live.takeConcerned();
      await this.#take(concerned, () => this.#plans.learn(concerned));
      // The networks differ all the same.
      if (concerned.size === 0) this.#options.onServices([], []);
    });
  }

  /** A decision that was made meanwhile has not seen these where they are now. */
  async #see(services: ReadonlySet<ServiceKey>): Promise<void> {
    const concerned = await this.#learning?.see(services);
    if (concerned === undefined || concerned.size === 0) return;
    await this.#turns.run(() => this.#take(concerned, () => this.#plans.replan(concerned)));
  }

  async #take(services: ReadonlySet<ServiceKey>, plan: () => Promise<void>): Promise<void> {
    const before = this.#ownersOf(services);
    await plan();
    const after = this.#ownersOf(services);
    if (before && after) this.#owners.take(before, after, this.#changedAt);
    this.#publish([...services]);
  }

  /** Undefined: no plan says it at the moment. */
  #ownersOf(services: ReadonlySet<ServiceKey>): ReadonlyMap<ServiceKey, Owners> | undefined {
    const planner = this.#plans.firstNow?.planner;
    return planner && new Map(Array.from(services, (key) => [key, ownersNow(planner, key)]));
  }

  #publish(services: readonly ServiceKey[]): void {
    const rows = services.flatMap((key) => this.#row(key) ?? []);
    const there = new Set(rows.map(({ service }) => service));
    const gone = services.filter((key) => !there.has(key));
    if (services.length > 0) this.#options.onServices(rows, gone);
  }

  #row(key: ServiceKey): ServiceRow | undefined {
    const planned = this.#plans.firstNow;
    return planned && serviceRow({ ...planned, mirrored: this.mirrored }, key, this.nodeName);
  }
}

/** Who serves a service, by family. */
export type Owners = Readonly<Partial<Record<IPFamily, OwnershipDecision>>>;

/** Changes of one service, and services with changes, that are kept: the latest. */
const MOST_CHANGES = 20;
const MOST_SERVICES = 2_000;

/** Who served each service before, as far as it was watched. */
export class OwnerHistory {
  /** The service that changed last comes last. */
  readonly #changes = new Map<ServiceKey, readonly OwnerChange[]>();

  of(service: ServiceKey): readonly OwnerChange[] {
    return this.#changes.get(service) ?? [];
  }

  /** @param before of the same services, before a change */
  take(before: ReadonlyMap<ServiceKey, Owners>, after: ReadonlyMap<ServiceKey, Owners>, at: number): void {
    for (const [service, now] of after) this.#take(service, before.get(service) ?? {}, now, at);
  }

  #take(service: ServiceKey, before: Owners, after: Owners, at: number): void {
    const found = IP_FAMILIES.flatMap((family): readonly OwnerChange[] => {
      const [old, now] = [before[family]?.ownership, after[family]?.ownership];
      if (old === now) return [];
      const why = after[family]?.why;
      return [{ at, family, ...(old && { before: old }), ...(now && { after: now }), ...(why && { why }) }];
    });
    if (found.length === 0) return;
    const all = [...this.of(service), ...found].slice(-MOST_CHANGES);
    this.#changes.delete(service);
    this.#changes.set(service, all);
    const [oldest] = this.#changes.keys();
    if (this.#changes.size > MOST_SERVICES && oldest !== undefined) this.#changes.delete(oldest);
  }
}

interface NodeNews {
  /** Anything that decides about endpoints, node ports and local traffic. */
  readonly isChanged: boolean;
  /** Its plan is by something else. */
  readonly isOutdated: boolean;
}

class KnownNodes {
  readonly all = new Map<string, NodeState>();
  readonly #isLookedFrom: (name: string) => boolean;
  /** As the node that is looked from was last; undefined: it is there, or never was. */
  #deleted: NodeState | undefined;

  constructor(isLookedFrom: (name: string) => boolean) {
    this.#isLookedFrom = isLookedFrom;
  }

  get isDeleted(): boolean {
    return this.#deleted !== undefined;
  }

  /** The Node as it is, or was last; undefined: there is none. */
  of(name: string): NodeState | undefined {
    return this.all.get(name) ?? (this.#isLookedFrom(name) ? this.#deleted : undefined);
  }

  /** A Node came, changed or (undefined) went. */
  take(name: string, node: NodeState | undefined): NodeNews {
    const before = this.all.get(name);
    const planned = this.of(name);
    if (node === undefined) this.all.delete(name);
    else this.all.set(name, node);
    if (this.#isLookedFrom(name)) this.#deleted = node === undefined ? planned : undefined;
    // Heartbeats come every few seconds, and change nothing here.
    const isChanged = !isSame(before, node);
    return { isChanged, isOutdated: isChanged && node !== undefined && !isSame(planned, node) };
  }
}

/** The first by name of those that there are, or that endpoints are on. */
function someNode(nodes: ReadonlyMap<string, NodeState>, state: ClusterView): string {
  const [first] = [...nodes.keys()].sort();
  if (first !== undefined) return first;
  const slices = [...state.keys()].flatMap((key) => state.slices(key));
  const names = slices.flatMap(({ endpoints }) => endpoints.flatMap(({ nodeName }) => nodeName ?? []));
  return names.sort()[0] ?? "node";
}

/** Whether the same is known of a Node of what decides about endpoints, node ports and local traffic. */
function isSame(one: NodeState | undefined, other: NodeState | undefined): boolean {
  const facts = (node: NodeState | undefined) => node && [node.zone, node.addresses, node.podCIDRs];
  return JSON.stringify(facts(one)) === JSON.stringify(facts(other));
}

/** Who serves it now, in each family that it has. */
function ownersNow(planner: Pick<Planner, "ownership">, service: ServiceKey): Owners {
  const owners = IP_FAMILIES.map((family) => [family, planner.ownership(service, family)] as const);
  return Object.fromEntries(owners.filter(([, decision]) => decision !== undefined));
}

/** Work that comes one after the other: what begins while other work goes on waits for its end. */
class SerialQueue {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work);
    // The caller gets the error; the next job runs all the same.
    this.#last = turn.catch(() => undefined);
    return turn;
  }
}

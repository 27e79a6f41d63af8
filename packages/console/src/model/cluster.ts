import { inSlices, nextTurn } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import { ClusterState, type NodeState, type ServiceKey } from "@fairlead/core";
import type { FilterOptions, Memory } from "@fairlead/endpoint-filter";
import { type Mode, type PlannedNode, planNodeSteps } from "@fairlead/inspect";
import type { ObjectSource } from "@fairlead/watch";
import type { ServiceAnswer, ServiceRow } from "../protocol.ts";
import { followObjects } from "./follow.ts";
import { OwnerHistory, type Owners, ownersNow } from "./owner-history.ts";
import { serviceRow } from "./rows.ts";
import { Turns } from "./turns.ts";
import type { UnusableObjects } from "./unusable.ts";

/** How the agents are set up. */
export interface AgentSetup {
  readonly mode: Mode;
  readonly config: AgentConfig;
  readonly filter: FilterOptions;
  readonly memory: Memory;
}

export interface ClusterOptions {
  readonly setup: AgentSetup;
  /** The node that the list looks from; undefined: the first one by name. */
  readonly nodeName: string | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Takes what cannot be used of the objects. */
  readonly unusable: Pick<UnusableObjects, "take">;
  /** The services that came, changed or went, once the first state is known. */
  readonly onServices: (rows: readonly ServiceRow[], gone: readonly ServiceKey[]) => void;
  /** A node that came, changed or (undefined) went. */
  readonly onNode: (name: string, node: NodeState | undefined) => void;
}

/** A plan with what its agent would remember by now. */
interface KeptPlan {
  readonly planned: PlannedNode;
  memory: Memory;
}

/** Plans of nodes that are kept: each has every service. */
const MOST_PLANS = 6;

/** The objects as they are now, and what the agents of the nodes that somebody looks at make of them. */
export class LiveCluster {
  readonly state = new ClusterState();
  readonly nodes = new Map<string, NodeState>();
  readonly #options: ClusterOptions;
  readonly #turns = new Turns();
  readonly #plans = new Map<string, KeptPlan>();
  readonly #ready = Promise.withResolvers<void>();
  readonly #owners = new OwnerHistory();
  readonly #startedAt: number;
  /** By node: what its kernel says, where it was asked. */
  readonly #addresses = new Map<string, readonly string[]>();
  #serviceCIDRs: readonly string[] | undefined;
  #nodeName: string | undefined;
  #updating = false;
  #changedAt: number;

  constructor(options: ClusterOptions) {
    this.#options = options;
    this.#nodeName = options.nodeName;
    this.#changedAt = options.now();
    this.#startedAt = this.#changedAt;
  }

  /** The node that the list looks from. */
  get nodeName(): string {
    return this.#nodeName ?? "";
  }

  /** When the last change of an object was taken in. */
  get changedAt(): number {
    return this.#changedAt;
  }

  /** Resolves when all objects are known and planned for the first time. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Follows the objects until the signal aborts, or the source ends. */
  follow(source: ObjectSource, signal: AbortSignal): Promise<void> {
    const to = {
      state: this.state,
      mode: this.#options.setup.mode,
      unusable: this.#options.unusable,
      onChange: () => void this.#changed(),
      onNode: (name: string, node: NodeState | undefined) => this.#node(name, node),
      onServiceCIDRs: (cidrs: readonly string[]) => this.#ranges(cidrs),
      onComplete: () => void this.#begin(),
    };
    return followObjects(source, to, signal);
  }

  /** What a node's own interfaces have, which counts from now on in place of what its Node object says. */
  setAddresses(nodeName: string, addresses: readonly string[]): void {
    const sorted = [...addresses].sort();
    if (this.#addresses.get(nodeName)?.join() === sorted.join()) return;
    this.#addresses.set(nodeName, sorted);
    this.#plans.delete(nodeName);
  }

  /** The plan of a node, made when it is asked for the first time. Nothing changes it while the work goes on. */
  async withPlan<T>(nodeName: string, work: (planned: PlannedNode) => T | Promise<T>): Promise<T> {
    await this.ready;
    return this.#turns.run(async () => work(await this.#plan(nodeName)));
  }

  /** Who served a service before, since this was started. */
  ownersOf(service: ServiceKey): ServiceAnswer["owners"] {
    return { since: this.#startedAt, changes: this.#owners.of(service) };
  }

  /** Every service, in the order of the state, in portions. */
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
    this.#nodeName ??= this.#someNode();
    // The first plan has everything that is there now.
    this.state.takeDirty();
    await this.#turns.run(() => this.#plan(this.nodeName));
    this.#ready.resolve();
  }

  /** The first by name of those that there are, or that endpoints are on. */
  #someNode(): string {
    const [first] = [...this.nodes.keys()].sort();
    if (first !== undefined) return first;
    const slices = [...this.state.keys()].flatMap((key) => this.state.slices(key));
    const names = slices.flatMap(({ endpoints }) => endpoints.flatMap(({ nodeName }) => nodeName ?? []));
    return names.sort()[0] ?? "node";
  }

  async #plan(nodeName: string): Promise<PlannedNode> {
    const known = this.#plans.get(nodeName);
    if (known !== undefined) return known.planned;
    const { setup } = this.#options;
    const node = this.nodes.get(nodeName);
    const ranges = this.#serviceCIDRs;
    const addresses = this.#addresses.get(nodeName);
    const cluster = { state: this.state, problems: [], ...(node && { node }), ...(ranges && { serviceCIDRs: ranges }) };
    const planned = await inSlices(planNodeSteps({ ...setup, cluster, nodeName, ...(addresses && { addresses }) }));
    const [oldest] = [...this.#plans.keys()].filter((name) => name !== this.nodeName);
    if (this.#plans.size >= MOST_PLANS && oldest !== undefined) this.#plans.delete(oldest);
    this.#plans.set(nodeName, { planned, memory: setup.memory.apply(planned.remembered) });
    return planned;
  }

  #node(name: string, node: NodeState | undefined): void {
    if (node === undefined) this.nodes.delete(name);
    else this.nodes.set(name, node);
    // Zone and addresses decide about endpoints and node ports.
    this.#plans.delete(name);
    this.#options.onNode(name, node);
  }

  #ranges(cidrs: readonly string[]): void {
    this.#serviceCIDRs = cidrs;
    this.#plans.clear();
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
      const { services } = this.state.takeDirty();
      const before = this.#ownersOf(services);
      for (const plan of this.#plans.values()) {
        const step = await inSlices(plan.planned.planner.replan(this.state, services, plan.memory));
        plan.memory = plan.memory.apply(step.memory);
      }
      await this.#plan(this.nodeName);
      const after = this.#ownersOf(services);
      if (before && after) this.#owners.take(before, after, this.#changedAt);
      this.#publish([...services]);
    });
  }

  /** Undefined: no plan says it at the moment. */
  #ownersOf(services: ReadonlySet<ServiceKey>): ReadonlyMap<ServiceKey, Owners> | undefined {
    const plan = this.#plans.get(this.nodeName);
    return plan && new Map(Array.from(services, (key) => [key, ownersNow(plan.planned.planner, key)]));
  }

  #publish(services: readonly ServiceKey[]): void {
    const rows = services.flatMap((key) => this.#row(key) ?? []);
    const there = new Set(rows.map(({ service }) => service));
    const gone = services.filter((key) => !there.has(key));
    if (services.length > 0) this.#options.onServices(rows, gone);
  }

  #row(key: ServiceKey): ServiceRow | undefined {
    const plan = this.#plans.get(this.nodeName);
    return plan && serviceRow(this.state, plan.planned.planner, key, this.nodeName);
  }
}

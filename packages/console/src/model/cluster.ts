import { nextTurn } from "@fairlead/base";
import { ClusterState, type NodeState, type ServiceKey } from "@fairlead/core";
import type { PlannedNode } from "@fairlead/inspect";
import { MirroredSlices } from "@fairlead/intake";
import type { ObjectSource } from "@fairlead/watch";
import type { ServiceAnswer, ServiceRow } from "../protocol/index.ts";
import type { AgentSetup } from "./agent-setup.ts";
import type { ClusterOptions } from "./cluster-options.ts";
import { followObjects } from "./follow.ts";
import { KnownNodes, someNode } from "./known-nodes.ts";
import { Learning } from "./learning.ts";
import { OwnerHistory, type Owners, ownersNow } from "./owner-history.ts";
import { Plans } from "./plans.ts";
import { serviceRow } from "./rows.ts";
import { SerialQueue } from "./serial-queue.ts";

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

  /**
   * Where the objects come from: what is not followed can be read once.
   *
   * @throws Error before `follow`
   */
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
    const planner = this.#plans.firstNow?.planner;
    return planner && serviceRow({ state: this.state, mirrored: this.mirrored, planner }, key, this.nodeName);
  }
}

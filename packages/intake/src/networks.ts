/** Networks learned from objects of CNIs: followed, or decided once. */

import { type Clock, inSlices, type Slicing } from "@fairlead/base";
import type { ClusterState, ClusterView, ServiceKey } from "@fairlead/core";
import { API_SERVER } from "@fairlead/endpoint-filter";
import {
  AddressIndex,
  type LastKnown,
  Networks,
  type NetworksDecision,
  type NetworksReport,
  type NetworksSettings,
  type NetworksUpdate,
  type ServicesView,
} from "@fairlead/networks";
import type { OtherSubscription } from "@fairlead/watch";
import { askedFor, type NetworkSubscriptionsOptions, networkSubscriptions } from "./network-subscriptions.ts";

export interface NetworksSetup {
  readonly settings: NetworksSettings;
  /** What the agent before this one knew. Default: nothing. */
  readonly known?: LastKnown;
}

interface LiveNetworksParts {
  readonly setup: NetworksSetup;
  readonly state: ClusterState;
  readonly clock: Clock;
  readonly onProblem: NetworkSubscriptionsOptions["onProblem"];
  /** Called with each decision, whether it differs from the one before or not. */
  readonly onDecided: (decision: NetworksDecision, update: NetworksUpdate) => void;
  /** Takes what gives the last known: only what is written has to be made. */
  readonly keep: (read: () => LastKnown) => void;
  /** How others get their turn. Default: as everywhere. */
  readonly slicing?: Partial<Slicing>;
}

interface LiveNetworksEnds {
  /** The first decision was made: it is in force. Comes once. */
  readonly onFirst: () => void;
  /** Another decision is to be put in force; comes before `onFirst`, too. */
  readonly onChange: (decision: NetworksDecision) => void;
}

/** The networks of the cluster while they are followed: asks for decisions when they are due. */
export class LiveNetworks {
  readonly subscriptions: readonly OtherSubscription[];
  readonly #parts: LiveNetworksParts;
  readonly #networks: Networks;
  readonly #services: ClusterServices;
  /** Lists that the first decision has to wait for. */
  readonly #missing = new Set(["services", "endpointSlices"]);
  #concerned = new Set<ServiceKey>();
  #ends: LiveNetworksEnds | undefined;
  #last: NetworksDecision | undefined;
  /** A decision is being made, in turns with others. */
  #deciding = false;
  /** Decisions that were begun. */
  #decisions = 0;
  /** How many they were when the sync that runs took its changes. */
  #decisionsAtSync = 0;
  #cancel: (() => void) | undefined;

  constructor(parts: LiveNetworksParts) {
    const { setup, state, clock, onProblem } = parts;
    const { settings, known } = setup;
    this.#parts = parts;
    this.#networks = new Networks(settings, clock, known);
    this.#services = new ClusterServices(state);
    this.subscriptions = networkSubscriptions({
      networks: this.#networks,
      ...askedFor(settings),
      onChange: () => this.#arm(),
      onProblem,
    });
  }

  start(ends: LiveNetworksEnds): void {
    this.#ends = ends;
    this.#arm();
  }

  stop(): void {
    this.#ends = undefined;
    this.#cancel?.();
  }

  /** The first complete list of a resource is in. */
  synced(resource: string): void {
    this.#missing.delete(resource);
    this.#arm();
  }

  setServiceCIDRs(cidrs: readonly string[]): void {
    this.#networks.objects.setServiceCIDRs(cidrs);
    this.#arm();
  }

  /** Services that decisions since the last call may have given another owner. */
  takeConcerned(): ReadonlySet<ServiceKey> {
    const taken = this.#concerned;
    this.#concerned = new Set();
    return taken;
  }

  /** A sync takes its changes: what it plans by is in force now. */
  syncBegins(): void {
    this.#decisionsAtSync = this.#deciding ? -1 : this.#decisions;
  }

  /** Endpoints of these came, moved or went, and were planned. */
  async see(services: ReadonlySet<ServiceKey>): Promise<void> {
    await inSlices(this.#services.refresh(services), this.#parts.slicing);
    if (services.has(API_SERVER)) this.#seeAPIServer();
    // A decision that was made meanwhile has not seen these where they are: they may not be among those it touches.
    if (this.#decisionsAtSync !== this.#decisions) for (const key of services) this.#concerned.add(key);
  }

  report(): NetworksReport {
    return this.#networks.report();
  }

  #seeAPIServer(): void {
    this.#networks.objects.setAPIServer(this.#services.addresses(API_SERVER));
    this.#arm();
  }

  #arm(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    if (this.#ends === undefined || this.#deciding) return;
    if (this.#last === undefined && this.#missing.size > 0) return;
    const { due } = this.#networks;
    if (due === undefined) return;
    this.#cancel = this.#parts.clock.after(due, () => this.#act());
  }

  #act(): void {
    if (this.#last !== undefined || this.#networks.ready) void this.#decide();
    else this.#arm();
  }

  /** Other work waits at most a slice for it, however many CIDRs and services there are. */
  async #decide(): Promise<void> {
    const { slicing } = this.#parts;
    const before = this.#last;
    this.#deciding = true;
    this.#decisions++;
    if (before === undefined) {
      await inSlices(this.#services.refresh(this.#parts.state.keys()), slicing);
      this.#networks.objects.setAPIServer(this.#services.addresses(API_SERVER));
    }
    const decision = await inSlices(this.#networks.deciding(this.#services), slicing);
    this.#deciding = false;
    if (this.#ends === undefined) return;
    this.#last = decision;
    for (const key of decision.touched) this.#concerned.add(key);
    this.#parts.onDecided(decision, this.#networks.takeUpdate());
    this.#parts.keep(() => this.#networks.lastKnown());
    const same = before?.filter === decision.filter && before.clusterCIDRs === decision.clusterCIDRs;
    if (!same) this.#ends.onChange(decision);
    if (before === undefined) this.#ends.onFirst();
    this.#arm();
  }
}

export interface NetworksOnceParts {
  readonly settings: NetworksSettings;
  readonly clock: Pick<Clock, "now" | "monotonic">;
  /** All that there is to know is known. May come more than once. */
  readonly onReady: () => void;
}

export interface LearnedOnce {
  readonly decision: NetworksDecision;
  readonly report: NetworksReport;
  /** What is wrong with objects: `Subnet/typo: spec.cidrBlock …` */
  readonly problems: readonly string[];
}

/** The networks of a cluster as they are now, for tools that look once. */
export class NetworksOnce {
  readonly subscriptions: readonly OtherSubscription[];
  readonly #networks: Networks;
  readonly #problems: string[] = [];

  constructor({ settings, clock, onReady }: NetworksOnceParts) {
    const networks = new Networks(settings, clock);
    this.#networks = networks;
    this.subscriptions = networkSubscriptions({
      networks,
      ...askedFor(settings),
      onChange: () => {
        if (networks.ready) onReady();
      },
      onProblem: (_source, object, problem) => this.#problems.push(`${object}: ${problem}`),
    });
  }

  /** @param state all services, with the EndpointSlices of those that are asked about */
  decide(state: ClusterView, serviceCIDRs: readonly string[]): LearnedOnce {
    const services = new ClusterServices(state);
    for (const _one of services.refresh(state.keys()));
    this.#networks.objects.setServiceCIDRs(serviceCIDRs);
    this.#networks.objects.setAPIServer(services.addresses(API_SERVER));
    const decision = this.#networks.decide(services);
    return { decision, report: this.#networks.report(), problems: this.#problems };
  }
}

/** The services of a cluster state, as decisions about networks ask for them. */
export class ClusterServices implements ServicesView {
  readonly #state: ClusterView;
  readonly #index = new AddressIndex();

  constructor(state: ClusterView) {
    this.#state = state;
  }

  /** Looks again where the endpoints of these are; yields after each. */
  *refresh(services: Iterable<ServiceKey>): Generator<void, void> {
    for (const key of services) {
      this.#index.set(key, this.#addresses(key));
      yield;
    }
  }

  keys(): Iterable<ServiceKey> {
    return this.#state.keys();
  }

  within(cidr: string): ReadonlySet<ServiceKey> {
    return this.#index.within(cidr);
  }

  *inNamespace(namespace: string): Generator<ServiceKey, void> {
    for (const key of this.#state.keys()) if (key.startsWith(`${namespace}/`)) yield key;
  }

  /** The addresses of all its endpoints, ready or not. */
  addresses(key: ServiceKey): readonly string[] {
    return [...new Set(this.#addresses(key))].sort();
  }

  *#addresses(key: ServiceKey): Generator<string, void> {
    for (const { endpoints } of this.#state.slices(key)) for (const { address } of endpoints) yield address;
  }
}

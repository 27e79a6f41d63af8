import { type Clock, inSlices, type Slicing } from "@fairlead/base";
import type { ClusterState, ServiceKey } from "@fairlead/core";
import { API_SERVER } from "@fairlead/endpoint-filter";
import {
  type LastKnown,
  Networks,
  type NetworksDecision,
  type NetworksReport,
  type NetworksSettings,
  type NetworksUpdate,
} from "@fairlead/networks";
import type { OtherSubscription } from "@fairlead/watch";
import { ClusterServices } from "./cluster-services.ts";
import { askedFor, type NetworkSubscriptionsOptions, networkSubscriptions } from "./subscriptions.ts";

/** What the networks begin with. */
export interface NetworksSetup {
  readonly settings: NetworksSettings;
  /** What the agent before this one knew. Default: nothing. */
  readonly known?: LastKnown;
}

export interface LiveNetworksParts {
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

export interface LiveNetworksEnds {
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

  /** Nobody waits longer than a slice for it, however many CIDRs and services there are. */
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

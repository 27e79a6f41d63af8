import { type Clock, familyOf, IP_FAMILIES, inSlices, nextTurn, type Slicing, systemClock } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import { ClusterState, type IPFamily, type ModeFacts, Planner, type PlanStep, type ServiceKey } from "@fairlead/core";
import { createEndpointFilter, type FilterOptions, Memory } from "@fairlead/endpoint-filter";
import type { NetworksSettings } from "@fairlead/networks";
import type { ObjectSource } from "@fairlead/watch";
import { LiveNetworks } from "./networks.ts";
import { NodeInputs } from "./node-inputs.ts";
import { keepingMirrors, MirroredSlices, type PodNetworkFacts, shownAnnotations } from "./pod-network.ts";
import { subscriptions } from "./subscriptions.ts";

/** A proxy on one node: what its plan follows from, apart from the objects. */
interface PlanSetup {
  readonly config: AgentConfig;
  /** From the configuration by `filterSettings`. */
  readonly filter: FilterOptions;
  /** Which objects CIDRs are learned from. Default: none are. */
  readonly networks?: NetworksSettings | undefined;
  readonly memory: Memory;
  readonly nodeName: string;
  readonly mode: Pick<ModeFacts, "semantics" | "needs">;
}

export interface LivePlanParts extends PlanSetup {
  /**
   * What the plan is for. `owners`: Services and endpoints decide, and the networks. `rules`: in addition the Node, its
   * addresses (`setAddresses`), without which there is no plan, and the service CIDRs.
   */
  readonly purpose: "owners" | "rules";
  /** These were planned, with the first step all; the planner rests until the promise resolves. */
  readonly onPlanned: (services: ReadonlySet<ServiceKey> | "all", step: PlanStep) => void | Promise<void>;
  /** A slice that OVN-Kubernetes mirrors for this Service came, changed or went, after the first step. */
  readonly onMirrored?: (service: ServiceKey) => void;
  /** Default: the system's. */
  readonly clock?: Clock;
  readonly slicing?: Partial<Slicing>;
}

/** The plan of one node while its objects are followed, for tools: it is made again with each change. */
export class LivePlan {
  readonly planner: Planner;
  readonly #parts: LivePlanParts;
  readonly #state = new ClusterState();
  readonly #mirrored = new MirroredSlices();
  readonly #inputs: NodeInputs;
  readonly #networks: LiveNetworks | undefined;
  /** What has to be known before there is a plan. */
  readonly #missing: Set<string>;
  /** Services that decisions about networks may have given another owner, and no step has planned since. */
  #concerned = new Set<ServiceKey>();
  readonly #memory: Memory;
  #planned = false;
  #asked = false;
  #running = false;
  readonly #failed = Promise.withResolvers<never>();

  constructor(parts: LivePlanParts) {
    const { config, nodeName, filter, mode, networks, purpose, memory, clock = systemClock } = parts;
    this.#parts = parts;
    this.#memory = new Memory(memory.entries());
    this.#inputs = new NodeInputs({
      config,
      nodeName,
      families: IP_FAMILIES,
      filter: createEndpointFilter(filter),
      mode,
    });
    this.planner = new Planner(this.#inputs.options());
    this.#networks =
      networks &&
      new LiveNetworks({
        setup: { settings: networks },
        state: this.#state,
        clock,
        onProblem: () => {},
        onDecided: () => {},
        keep: () => {},
      });
    const ofRules = purpose === "rules" ? ["node", "addresses"] : [];
    this.#missing = new Set(["services", "endpointSlices", ...ofRules, ...(networks ? ["networks"] : [])]);
  }

  /** What is learned of networks by now; undefined: nothing is. */
  get report() {
    return this.#networks?.report();
  }

  get pods(): PodNetworkFacts {
    return { state: this.#state, mirrored: this.#mirrored, defaultVPCs: this.report?.defaultVPCs };
  }

  setAddresses(addresses: readonly string[]): void {
    if (this.#inputs.setAddresses(addresses, firstOfEach(addresses))) this.#ask();
    this.#known("addresses");
  }

  /**
   * Follows the objects until the signal aborts, or the source ends.
   *
   * @throws Error what the source, the planner or `onPlanned` ends with
   */
  async follow(source: ObjectSource, signal: AbortSignal): Promise<void> {
    const { purpose, mode, onMirrored = () => {} } = this.#parts;
    const live = this.#networks;
    live?.start({
      onFirst: () => this.#known("networks"),
      onChange: (decision) => {
        if (this.#inputs.setNetworks(decision)) this.#ask();
      },
    });
    const { node, serviceCIDRs, ...objects } = this.#subscriptions(
      purpose === "rules" && mode.needs.serviceCIDRs === true,
    );
    const slices = keepingMirrors(objects.endpointSlices, this.#mirrored, (service) => {
      if (this.#planned) onMirrored(service);
    });
    const all = {
      services: objects.services,
      endpointSlices: slices,
      ...(purpose === "rules" && { node }),
      ...(serviceCIDRs && { serviceCIDRs }),
      ...(live && { others: live.subscriptions }),
    };
    await Promise.race([source.run(all, signal), this.#failed.promise]).finally(() => live?.stop());
  }

  #subscriptions(planned: boolean) {
    const { config, mode } = this.#parts;
    const live = this.#networks;
    return subscriptions({
      state: this.#state,
      annotations: shownAnnotations(config, mode.semantics),
      serviceProxyName: config.serviceProxyName,
      problems: { object: () => {} },
      // A node that vanished keeps what was known of it.
      onNode: (node) => {
        if (node !== undefined && this.#inputs.setNode(node)) this.#ask();
      },
      onChange: () => this.#ask(),
      onSynced: (resource) => {
        live?.synced(resource);
        this.#known(resource);
      },
      ...((planned || live) && {
        onServiceCIDRs: (cidrs) => {
          live?.setServiceCIDRs(cidrs);
          if (planned && this.#inputs.setServiceCIDRs(cidrs)) this.#ask();
        },
      }),
    });
  }

  #known(what: string): void {
    if (this.#missing.delete(what)) this.#ask();
  }

  /** Changes that come close together are planned at once. */
  #ask(): void {
    this.#asked = true;
    if (this.#running || this.#missing.size > 0) return;
    this.#running = true;
    this.#run().then(
      () => {
        this.#running = false;
      },
      (error: unknown) => this.#failed.reject(error),
    );
  }

  async #run(): Promise<void> {
    while (this.#asked) {
      await nextTurn();
      this.#asked = false;
      await this.#step();
    }
  }

  async #step(): Promise<void> {
    const { onPlanned, slicing } = this.#parts;
    const live = this.#networks;
    live?.syncBegins();
    const { services: dirty } = this.#state.takeDirty();
    this.#takeConcerned();
    const services = this.#planned ? new Set([...dirty, ...this.#concerned]) : "all";
    this.#concerned.clear();
    this.planner.setOptions(this.#inputs.options(), live && (services === "all" ? undefined : services));
    const step = await inSlices(this.planner.replan(this.#state, services, this.#memory), slicing);
    this.#memory.apply(step.memory);
    this.#planned = true;
    await onPlanned(services, step);
    await live?.see(dirty);
    // A decision that was made meanwhile has not seen these where they are now.
    if (this.#takeConcerned()) this.#asked = true;
  }

  #takeConcerned(): boolean {
    for (const key of this.#networks?.takeConcerned() ?? []) this.#concerned.add(key);
    return this.#concerned.size > 0;
  }
}

const LOOPBACK: readonly string[] = ["127.0.0.1", "::1"];

/** What stands for the address that the kernel would send from, where there is no Node object. */
export function firstOfEach(addresses: readonly string[]): Partial<Record<IPFamily, string>> {
  const others = addresses.filter((address) => !LOOPBACK.includes(address));
  const entries = IP_FAMILIES.map((family) => [family, others.find((one) => familyOf(one) === family)] as const);
  return Object.fromEntries(entries.filter(([, address]) => address !== undefined));
}

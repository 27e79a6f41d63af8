/** The plan of each node, as an agent of this configuration would make it. */

import { inSlices } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import type { ClusterState, NodeState, ServiceKey } from "@fairlead/core";
import { type FilterOptions, Memory } from "@fairlead/endpoint-filter";
import { factsOf, type Mode, nodeOptions, type PlannedNode, planNodeSteps, podFacts } from "@fairlead/inspect";
import type { LearnedOnce, MirroredSlices, NetworksOnceParts } from "@fairlead/intake";

interface PlansParts {
  /** How the agents of nodes are set up of which nothing else is known. */
  readonly setup: AgentSetup;
  readonly state: ClusterState;
  readonly mirrored: MirroredSlices;
  /** The Node as it is, or was last; undefined: there is none. */
  readonly nodeOf: (name: string) => NodeState | undefined;
  /** Those that there are. */
  readonly nodes: () => ReadonlyMap<string, NodeState>;
  /** What the agents have learned of networks by now; undefined: they learn nothing. */
  readonly learned: () => LearnedOnce | undefined;
}

/** A plan with what its agent would remember by now. */
interface KeptPlan {
  planned: PlannedNode;
  readonly memory: Memory;
}

/** Plans that are kept: each has every service. */
const MOST_PLANS = 6;

export class Plans {
  /** The node whose plan is always there. */
  first = "";
  readonly #parts: PlansParts;
  readonly #kept = new Map<string, KeptPlan>();
  /** By node: what its kernel says, where it was asked. */
  readonly #addresses = new Map<string, readonly string[]>();
  /** Nodes whose plans are made of something that has changed since: they are made anew when they are asked for. */
  readonly #outdated = new Set<string>();
  /** By node: how its own agent is set up. */
  readonly #setups = new Map<string, AgentSetup>();
  #serviceCIDRs: readonly string[] | undefined;

  constructor(parts: PlansParts) {
    this.#parts = parts;
  }

  /** The plan that is always there, once it was made: while a new one is made it is the one before. */
  get firstNow(): PlannedNode | undefined {
    return this.#kept.get(this.first)?.planned;
  }

  setAddresses(nodeName: string, addresses: readonly string[]): void {
    const sorted = [...addresses].sort();
    if (this.#addresses.get(nodeName)?.join() === sorted.join()) return;
    this.#addresses.set(nodeName, sorted);
    this.outdate(nodeName);
  }

  setupOf(nodeName: string): AgentSetup {
    return this.#setups.get(nodeName) ?? this.#parts.setup;
  }

  /** @returns whether it is another one */
  setSetup(nodeName: string, setup: AgentSetup): boolean {
    const isNew = identity(this.setupOf(nodeName)) !== identity(setup);
    this.#setups.set(nodeName, setup);
    if (isNew) this.outdate(nodeName);
    return isNew;
  }

  setServiceCIDRs(cidrs: readonly string[]): void {
    this.#serviceCIDRs = cidrs;
    for (const nodeName of [this.first, ...this.#kept.keys()]) this.outdate(nodeName);
  }

  /** What its plan is made of has changed. */
  outdate(nodeName: string): void {
    this.#outdated.add(nodeName);
  }

  /** Made when it is asked for the first time. */
  async of(nodeName: string): Promise<PlannedNode> {
    const known = this.#kept.get(nodeName);
    if (known !== undefined && !this.#outdated.has(nodeName)) return known.planned;
    // Before: what changes from now on may not be in it.
    this.#outdated.delete(nodeName);
    const planned = await inSlices(planNodeSteps(this.#request(nodeName)));
    const [oldest] = [...this.#kept.keys()].filter((name) => name !== this.first);
    if (this.#kept.size >= MOST_PLANS && oldest !== undefined) this.#kept.delete(oldest);
    const memory = new Memory(this.setupOf(nodeName).memory.entries());
    memory.apply(planned.remembered);
    this.#kept.set(nodeName, { planned, memory });
    return planned;
  }

  /** These changed, or what decides about them did. Outdated plans are left: they are made anew first. */
  async replan(services: ReadonlySet<ServiceKey>): Promise<void> {
    for (const [nodeName, plan] of this.#kept) {
      if (this.#outdated.has(nodeName)) continue;
      const step = await inSlices(plan.planned.planner.replan(plan.planned.state, services, plan.memory));
      plan.memory.apply(step.memory);
    }
    await this.of(this.first);
  }

  /** Other CIDRs of networks count, which these services have to do with. */
  async learn(concerned: ReadonlySet<ServiceKey>): Promise<void> {
    for (const [nodeName, plan] of this.#kept) {
      if (this.#outdated.has(nodeName)) continue;
      const request = this.#request(nodeName);
      const options = nodeOptions(request);
      plan.planned.planner.setOptions(options, concerned);
      plan.planned = { ...plan.planned, options, pods: podFacts(request.cluster) };
    }
    await this.replan(concerned);
  }

  /** A Node came, changed or went, which is another one for all others. */
  outdateOthers(than: string): void {
    const others = new Set([this.first, ...this.#kept.keys()]);
    for (const name of others) if (name !== than && this.#knowsOthers(name)) this.outdate(name);
  }

  #knowsOthers(nodeName: string): boolean {
    return factsOf(this.setupOf(nodeName).mode).needs.otherNodes === true;
  }

  #others(nodeName: string): { readonly otherAddresses?: readonly string[] } {
    if (!this.#knowsOthers(nodeName)) return {};
    const others = [...this.#parts.nodes().values()].filter(({ name }) => name !== nodeName);
    return { otherAddresses: [...new Set(others.flatMap(({ addresses }) => addresses))].sort() };
  }

  #request(nodeName: string) {
    const { state, mirrored, nodeOf } = this.#parts;
    const [node, learned] = [nodeOf(nodeName), this.#parts.learned()];
    const [serviceCIDRs, addresses] = [this.#serviceCIDRs, this.#addresses.get(nodeName)];
    const known = {
      ...(node && { node }),
      ...(serviceCIDRs && { serviceCIDRs }),
      ...(learned && { learned }),
      ...this.#others(nodeName),
    };
    return {
      ...this.setupOf(nodeName),
      cluster: { state, mirrored, problems: [], ...known },
      nodeName,
      ...(addresses && { addresses }),
    };
  }
}

/** How the agents are set up. */
export interface AgentSetup {
  readonly mode: Mode;
  readonly config: AgentConfig;
  readonly filter: FilterOptions;
  /** Which objects CIDRs are learned from. Default: none are. */
  readonly networks?: NetworksOnceParts["settings"] | undefined;
  readonly memory: Memory;
  /** The proxy is kube-proxy. */
  readonly asKubeProxy?: boolean;
}

/** What of a configuration decides about plans, and more. */
function identity({ mode, config, asKubeProxy }: AgentSetup): string {
  return JSON.stringify([mode, config.kubeProxyConfiguration, config.fairleadConfiguration, asKubeProxy]);
}

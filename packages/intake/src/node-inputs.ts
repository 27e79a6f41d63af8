import { ofFamily } from "@fairlead/base";
import type { AgentConfig, DetectLocal } from "@fairlead/config";
import type { EndpointFilter, IPFamily, ModeFacts, NodePortAddresses, NodeState, PlannerOptions } from "@fairlead/core";
import { detectorFor } from "./detectors.ts";
import { type NodeIPSources, type NodeIPs, nodeIPs, type PrimaryFamily, primaryFamily } from "./node-ips.ts";
import { nodePortAddressesFor, nodePortHosts } from "./node-port-addresses.ts";
import { outermost } from "./service-cidrs.ts";

/** What learned networks change of the options. */
export interface LearnedNetworks {
  readonly filter: EndpointFilter;
  /** All of our own CIDRs, what is configured among them. */
  readonly clusterCIDRs: readonly string[];
}

export interface NodeInputsParts {
  readonly config: AgentConfig;
  readonly nodeName: string;
  readonly families: readonly IPFamily[];
  readonly filter: EndpointFilter;
  /** The mode that is planned for: what it has no use for is left out, so that changes of that do not matter. */
  readonly mode: Pick<ModeFacts, "semantics" | "needs">;
}

/** What is known of this node, which changes while the agent runs, as options of the planner. */
export class NodeInputs {
  readonly #parts: NodeInputsParts;
  #node: NodeState | undefined;
  #addresses: readonly string[] = [];
  #kernelIPs: NodeIPs = {};
  #serviceCIDRs: readonly string[] | undefined;
  #networks: LearnedNetworks | undefined;
  #options: PlannerOptions | undefined;

  constructor(parts: NodeInputsParts) {
    this.#parts = parts;
  }

  get node(): NodeState | undefined {
    return this.#node;
  }

  /** The node's addresses of both families as they were last set; empty: they are not known yet. */
  get addresses(): readonly string[] {
    return this.#addresses;
  }

  /** As far as it is known now. */
  get primaryFamily(): PrimaryFamily {
    return primaryFamily(this.#ipSources());
  }

  /** Returns whether it matters. A node that vanished keeps its zone and addresses: they were good a moment ago. */
  setNode(node: NodeState): boolean {
    this.#node = node;
    return this.#refresh();
  }

  /**
   * Returns whether it matters: most addresses that come and go are those of pods' interfaces.
   *
   * @param kernelIPs what the kernel would send from, for a node without a Node object
   */
  setAddresses(addresses: readonly string[], kernelIPs: NodeIPs): boolean {
    this.#addresses = addresses;
    this.#kernelIPs = kernelIPs;
    return this.#refresh();
  }

  /**
   * Returns whether it matters.
   *
   * @param cidrs of all ServiceCIDR objects, of both families
   */
  setServiceCIDRs(cidrs: readonly string[]): boolean {
    this.#serviceCIDRs = cidrs;
    return this.#refresh();
  }

  /** Returns whether it matters. */
  setNetworks(networks: LearnedNetworks): boolean {
    this.#networks = networks;
    return this.#refresh();
  }

  options(): PlannerOptions {
    this.#options ??= this.#derive();
    return this.#options;
  }

  #refresh(): boolean {
    const before = this.#options;
    const after = this.#derive();
    if (before?.filter === after.filter && JSON.stringify(before) === JSON.stringify(after)) return false;
    this.#options = after;
    return true;
  }

  #ipSources(): NodeIPSources {
    const { bindAddress } = this.#parts.config;
    return { bindAddress, node: this.#node?.addresses ?? [], kernel: this.#kernelIPs };
  }

  #derive(): PlannerOptions {
    const { config, nodeName, families, mode } = this.#parts;
    const { semantics, needs } = mode;
    const node = this.#node;
    const cidrs = needs.serviceCIDRs ? this.#serviceCIDRs : undefined;
    const ips = nodeIPs(this.#ipSources());
    const each = <T>(make: (family: IPFamily) => T): Partial<Record<IPFamily, T>> =>
      Object.fromEntries(families.map((family) => [family, make(family)]));
    const nodePortAddresses = each((family) =>
      nodePortAddressesFor(family, config.nodePortAddresses, ips, this.#addresses),
    );
    return {
      nodeName,
      ...(node?.zone === undefined ? {} : { zone: node.zone }),
      families,
      nodeIPs: ips,
      detectors: each((family) => detectorFor(family, this.#detectLocal(), node?.podCIDRs ?? [])),
      nodePortAddresses,
      ...(this.#addresses.length > 0 && {
        nodePortHosts: each((family) => this.#hosts(family, nodePortAddresses[family])),
      }),
      ...(needs.nodeAddresses && { nodeAddresses: each((family) => addressesOf(family, this.#addresses)) }),
      ...(cidrs && { serviceCIDRs: each((family) => outermost(cidrs.filter(ofFamily(family)))) }),
      masqueradeAll: config[config.mode].masqueradeAll,
      externalIPs: config.features.externalIPs,
      nodeHints: config.features.nodeHints,
      ...(config.resetStaleTCP && { resetStaleTCP: true }),
      semantics,
      filter: this.#networks?.filter ?? this.#parts.filter,
    };
  }

  #hosts(family: IPFamily, served: NodePortAddresses = { kind: "all" }): readonly string[] {
    return nodePortHosts(family, served, this.#addresses);
  }

  /** Where local traffic is told by CIDRs, those that were learned are among them. */
  #detectLocal(): DetectLocal {
    const { detectLocal } = this.#parts.config;
    if (this.#networks === undefined || (detectLocal.kind !== "cidrs" && detectLocal.kind !== "none"))
      return detectLocal;
    return { kind: "cidrs", cidrs: this.#networks.clusterCIDRs };
  }
}

function addressesOf(family: IPFamily, addresses: readonly string[]): readonly string[] {
  return [...new Set(addresses.filter(ofFamily(family)))].sort();
}

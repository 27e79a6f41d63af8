import type { NodeState } from "@fairlead/core";
import { factsOf, missingNodeDoubts, type PlannedNode, planNode } from "@fairlead/inspect";
import type { Context } from "../frame/context.ts";
import { agentsOf } from "../node/agent-pods.ts";
import type { AgentSetup } from "./agent.ts";
import { type Configured, configurationOf } from "./configuration.ts";
import { knownNodes } from "./known-nodes.ts";
import { learnedDoubts } from "./learned.ts";
import type { ClusterValues } from "./planned.ts";
import { clusterNow, type ReadCluster } from "./source.ts";

/** A node's plan, by the configuration of its own proxy. */
interface NodePlan {
  readonly planned: PlannedNode;
  readonly setup: AgentSetup;
}

/** Plans a cluster for any of its nodes. Its objects are read once for all proxies that ask for the same ones. */
export class PlannedNodes {
  readonly #options: ClusterValues;
  readonly #context: Context;
  readonly #nodes: ReadonlyMap<string, NodeState | undefined>;
  readonly #clusters = new Map<string, Promise<ReadCluster>>();
  /** Names of nodes by where their configuration is from. */
  readonly #remarks = new Map<string, string[]>();

  private constructor(options: ClusterValues, context: Context, nodes: ReadonlyMap<string, NodeState | undefined>) {
    this.#options = options;
    this.#context = context;
    this.#nodes = nodes;
  }

  /** @throws CommandFailure when neither Nodes nor agents' pods can be read */
  static async of(options: ClusterValues, context: Context): Promise<PlannedNodes> {
    return new PlannedNodes(options, context, await knownNodes(options, agentsOf(options, context), context));
  }

  /** In their order. */
  get names(): readonly string[] {
    return [...this.#nodes.keys()];
  }

  /**
   * @param addresses those that the node has
   * @throws CommandFailure when its configuration is not known, or objects cannot be read
   */
  async plan(nodeName: string, addresses: readonly string[]): Promise<NodePlan> {
    const configured = await configurationOf(this.#options, { on: nodeName }, this.#context);
    this.#remember(nodeName, configured);
    const { setup } = configured;
    const node = this.#nodes.get(nodeName);
    const known = { ...(await this.#clusterFor(setup)), ...(node && { node }) };
    for (const doubt of missingNodeDoubts(known, nodeName)) this.#context.warn(doubt);
    return { planned: planNode({ ...setup, cluster: known, nodeName, addresses }), setup };
  }

  /** Where the configurations of the planned nodes are from. */
  get remarks(): readonly string[] {
    return [...this.#remarks].map(([remark, names]) => `configuration of ${names.sort().join(", ")}: ${remark}`);
  }

  #remember(node: string, { remark }: Configured): void {
    if (remark === undefined) return;
    const text = remark.replace(`the proxy on ${node},`, "the running proxy,");
    const names = this.#remarks.get(text) ?? [];
    names.push(node);
    this.#remarks.set(text, names);
  }

  #clusterFor({ mode, networks, config }: AgentSetup): Promise<ReadCluster> {
    const { serviceCIDRs = false } = factsOf(mode).needs;
    const { multiCNI, serviceProxyName, serviceNetwork } = config;
    const key = JSON.stringify([serviceCIDRs, multiCNI, serviceProxyName, serviceNetwork]);
    const known = this.#clusters.get(key);
    if (known !== undefined) return known;
    // What is wrong with single objects is the same again.
    const context = this.#clusters.size === 0 ? this.#context : { ...this.#context, warn: () => {} };
    const read = clusterNow(this.#options, context, { serviceCIDRs, networks, config });
    this.#clusters.set(key, read);
    return read.then((cluster) => {
      if (cluster.learned !== undefined) for (const line of learnedDoubts(cluster.learned)) context.warn(line);
      return cluster;
    });
  }
}

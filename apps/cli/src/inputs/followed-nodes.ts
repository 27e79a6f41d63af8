import { LiveCluster } from "@fairlead/console";
import type { PlannedNode } from "@fairlead/inspect";
import { createApiSource, type SourceReport } from "@fairlead/watch";
import type { Context } from "../frame/context.ts";
import { version } from "../version.ts";
import { type AgentSetup, agentSetup } from "./agent.ts";
import { apiConnection, NO_CLUSTER, orFailure } from "./cluster-access.ts";
import type { ClusterValues } from "./planned.ts";

type FollowedOptions = Omit<ClusterValues, "node" | "file">;

interface Followed {
  readonly setup: AgentSetup;
  readonly cluster: LiveCluster;
}

/** A cluster that is read once, when it is asked for, and followed from then on: planned for any of its nodes. */
export class FollowedNodes implements Disposable {
  readonly #options: FollowedOptions;
  readonly #context: Context;
  readonly #stop = new AbortController();
  #followed: Followed | undefined;
  /** Aborted while the objects are not followed: they may be old. */
  #down = new AbortController();

  constructor(options: FollowedOptions, context: Context) {
    this.#options = options;
    this.#context = context;
  }

  /**
   * Nothing changes the plan while the work goes on.
   *
   * @param addresses those that the node has
   * @returns undefined: the node is not known, or the objects cannot be followed now; reading them anew says more
   * @throws CommandFailure when no cluster is known, or the options are wrong
   */
  async withPlan<T>(
    node: string,
    addresses: readonly string[],
    work: (planned: PlannedNode, setup: AgentSetup) => Promise<T>,
  ): Promise<T | undefined> {
    this.#followed ??= await this.#follow(node);
    const { setup, cluster } = this.#followed;
    const { signal } = this.#down;
    await Promise.race([cluster.ready, aborted(signal)]);
    if (signal.aborted || !cluster.nodes.has(node)) return undefined;
    cluster.setAddresses(node, addresses);
    return cluster.withPlan(node, (planned) => work(planned, setup));
  }

  [Symbol.dispose](): void {
    this.#stop.abort();
  }

  /** @param nodeName whose plan is made at once */
  async #follow(nodeName: string): Promise<Followed> {
    const setup = agentSetup(this.#options, this.#context);
    const connection = await orFailure(NO_CLUSTER, apiConnection(this.#options, this.#context));
    const cluster = new LiveCluster({
      setup,
      nodeName,
      now: () => Date.now(),
      unusable: { take: () => {} },
      onServices: () => {},
      onNode: () => {},
    });
    const { serviceProxyName } = setup.config;
    const onReport = (report: SourceReport) => this.#take(report);
    const source = createApiSource({
      connection,
      nodeName,
      serviceProxyName,
      userAgent: `fairlead/${version}`,
      onReport,
    });
    const end = () => this.#down.abort();
    cluster.follow(source, AbortSignal.any([this.#stop.signal, this.#context.signal])).then(end, end);
    return { setup, cluster };
  }

  #take({ type }: SourceReport): void {
    if (type === "failing") this.#down.abort();
    if (type === "recovered") this.#down = new AbortController();
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

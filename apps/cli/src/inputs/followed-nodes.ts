import { LiveCluster } from "@fairlead/console";
import type { PlannedNode } from "@fairlead/inspect";
import { selectionOf } from "@fairlead/intake";
import { createApiSource, type SourceReport } from "@fairlead/watch";
import type { ClusterAccess } from "../cluster/access.ts";
import type { Context } from "../frame/context.ts";
import { version } from "../version.ts";
import type { AgentSetup } from "./agent.ts";
import { apiConnection, NO_CLUSTER, orFailure } from "./cluster-access.ts";

/** A cluster that is read once, when it is asked for, and followed from then on: planned for any of its nodes. */
export class FollowedNodes implements Disposable {
  readonly #access: ClusterAccess;
  readonly #setup: AgentSetup;
  readonly #context: Context;
  readonly #stop = new AbortController();
  #followed: LiveCluster | undefined;
  /** Aborted while the objects are not followed: they may be old. */
  #down = new AbortController();

  /** @param setup of every node's agent */
  constructor(access: ClusterAccess, setup: AgentSetup, context: Context) {
    this.#access = access;
    this.#setup = setup;
    this.#context = context;
  }

  /**
   * Nothing changes the plan while the work goes on.
   *
   * @param addresses those that the node has
   * @returns undefined: the node is not known, or the objects cannot be followed now; reading them anew says more
   * @throws CommandFailure when no cluster is known
   */
  async withPlan<T>(
    node: string,
    addresses: readonly string[],
    work: (planned: PlannedNode) => Promise<T>,
  ): Promise<T | undefined> {
    this.#followed ??= await this.#follow(node);
    const cluster = this.#followed;
    const { signal } = this.#down;
    await Promise.race([cluster.ready, aborted(signal)]);
    if (signal.aborted || !cluster.nodes.has(node)) return undefined;
    cluster.setAddresses(node, addresses);
    return cluster.withPlan(node, work);
  }

  [Symbol.dispose](): void {
    this.#stop.abort();
  }

  /** @param nodeName whose plan is made at once */
  async #follow(nodeName: string): Promise<LiveCluster> {
    const setup = this.#setup;
    const connection = await orFailure(NO_CLUSTER, apiConnection(this.#access, this.#context));
    const cluster = new LiveCluster({
      setup,
      nodeName,
      now: () => Date.now(),
      unusable: { take: () => {} },
      onServices: () => {},
      onNode: () => {},
    });
    const onReport = (report: SourceReport) => this.#take(report);
    const source = createApiSource({
      connection,
      nodeName,
      ...selectionOf(setup.config),
      userAgent: `fairlead/${version}`,
      onReport,
    });
    const end = () => this.#down.abort();
    cluster.follow(source, AbortSignal.any([this.#stop.signal, this.#context.signal])).then(end, end);
    return cluster;
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

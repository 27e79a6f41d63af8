/** Carries steps out until the goal is reached, something fails or it is interrupted. */

import { type Clock, sleep } from "@fairlead/base";
import { nextStep, type Session, type Step } from "./next-step.ts";
import { type MigrationState, type NodeState, otherProxy, type Placement, type ProxyName } from "./state.ts";

/** How long is waited, in milliseconds. */
interface Patience {
  readonly lookMs: number;
  /** Until what is waited for must be there, or one node less is waited for: a rollout takes so long for each. */
  readonly waitMs: number;
  /** A node must stay well before the next one is changed. */
  readonly holdMs: number;
  /** Until a node must be as it should: objects change while it is looked at. */
  readonly verifyMs: number;
}

export interface MigrateOptions {
  readonly goal: ProxyName;
  /** False: nodes are changed without a look into their kernel. */
  readonly verify: boolean;
  readonly patience: Patience;
  readonly clock: Clock;
  readonly onStep: (step: Step) => void;
  /** Aborted: ends after the step that is being done; the next run goes on there. */
  readonly signal: AbortSignal;
}

export type Outcome =
  | { readonly kind: "done" }
  | { readonly kind: "stopped"; readonly reason: string }
  | { readonly kind: "interrupted" };

/**
 * Changes the cluster step by step until all of it has the goal, or something fails.
 *
 * @throws what the port throws: the cluster is left as it is, and the next run goes on there
 */
export async function migrate(port: MigrationPort, options: MigrateOptions): Promise<Outcome> {
  const run = new MigrationRun(port, options);
  for (;;) {
    if (options.signal.aborted) return { kind: "interrupted" };
    const outcome = await run.step();
    if (outcome !== undefined) return outcome;
  }
}

/** What verifying a node came to. */
export type Verified =
  | { readonly kind: "clean" }
  /** In words, a few lines at most. */
  | { readonly kind: "different"; readonly what: string }
  | { readonly kind: "unseen"; readonly reason: string };

/** Through this a migration sees and changes a cluster. Each call may fail; running it again loses nothing. */
export interface MigrationPort {
  observe(): Promise<MigrationState>;
  install(placement: Placement): Promise<void>;
  /** Removes what is there of Fairlead's objects, also where an earlier call has removed some. */
  uninstall(): Promise<void>;
  place(proxy: ProxyName, placement: Placement): Promise<void>;
  /** Compares the node's kernel with what should be programmed there: with what that proxy serves, in its mode. */
  verify(node: string, proxy: ProxyName): Promise<Verified>;
  /** Sets the node's label and takes its marks off. */
  assign(node: string, to: ProxyName): Promise<void>;
  /** As assign, and leaves the reason on the node. */
  putBack(node: string, to: ProxyName, reason: string): Promise<void>;
  prove(node: string, proxy: ProxyName): Promise<void>;
  /** Takes labels and marks off all nodes. */
  unmark(): Promise<void>;
}

class MigrationRun {
  readonly #port: MigrationPort;
  readonly #options: MigrateOptions;
  readonly #checked = new Set<string>();
  #failure: Session["failure"];
  #bridged = false;
  #uninstalled = false;
  /** Since when for no fewer things. */
  #waiting: { readonly since: number; readonly things: number } | undefined;

  constructor(port: MigrationPort, options: MigrateOptions) {
    this.#port = port;
    this.#options = options;
  }

  /** @returns undefined: there is more to do */
  async step(): Promise<Outcome | undefined> {
    const { goal, onStep, clock, patience } = this.#options;
    const overdue = this.#waiting !== undefined && clock.monotonic() - this.#waiting.since >= patience.waitMs;
    const state = await this.#port.observe();
    const session: Session = {
      checked: this.#checked,
      overdue,
      bridged: this.#bridged,
      uninstalled: this.#uninstalled,
      ...(this.#failure && { failure: this.#failure }),
    };
    const step = nextStep(state, goal, session);
    onStep(step);
    if (step.do === "wait") {
      const things = step.for.length;
      if (this.#waiting === undefined || things < this.#waiting.things) {
        this.#waiting = { since: clock.monotonic(), things };
      }
      await this.#sleep(patience.lookMs);
      return undefined;
    }
    this.#waiting = undefined;
    if (step.do === "done") return { kind: "done" };
    if (step.do === "stop") return { kind: "stopped", reason: step.reason };
    await this.#carryOut(step);
    return undefined;
  }

  async #carryOut(step: Exclude<Step, { readonly do: "wait" | "done" | "stop" }>): Promise<void> {
    const port = this.#port;
    switch (step.do) {
      case "install":
        await port.install(step.placement);
        this.#bridged = this.#options.goal === "kube-proxy";
        return;
      case "uninstall":
        await port.uninstall();
        this.#uninstalled = true;
        return;
      case "place":
        return port.place(step.proxy, step.placement);
      case "check":
        return this.#check(step.node);
      case "switch":
        return port.assign(step.node, step.to);
      case "prove":
        return this.#prove(step.node, step.proxy);
      case "unmark":
        return port.unmark();
      case "put-back":
        await port.putBack(step.node, step.to, step.reason);
        this.#failure = { node: step.node, reason: step.reason };
    }
  }

  async #check(node: string): Promise<void> {
    const problem = await this.#verify(node, otherProxy(this.#options.goal));
    if (problem === undefined) this.#checked.add(node);
    else if (!this.#options.signal.aborted) this.#failure = { node, reason: `${node}, before its change: ${problem}` };
  }

  async #prove(node: string, proxy: ProxyName): Promise<void> {
    const problem = (await this.#verify(node, proxy)) ?? (await this.#hold(node, proxy));
    // The next run looks at it again.
    if (this.#options.signal.aborted) return;
    if (problem === undefined) await this.#port.prove(node, proxy);
    else this.#failure = { node, reason: `${node}, served by ${proxy}: ${problem}` };
  }

  /** @returns what is wrong, and has been for a while */
  async #verify(node: string, proxy: ProxyName): Promise<string | undefined> {
    const { verify, clock, patience, signal } = this.#options;
    if (!verify) return undefined;
    const end = clock.monotonic() + patience.verifyMs;
    for (;;) {
      const verified = await this.#port.verify(node, proxy);
      if (verified.kind === "clean") return undefined;
      if (clock.monotonic() >= end || signal.aborted) return problemText(verified);
      await this.#sleep(patience.lookMs);
    }
  }

  /** Sees that a node's proxy stays ready and does not start again. */
  async #hold(name: string, proxy: ProxyName): Promise<string | undefined> {
    const { clock, patience, signal } = this.#options;
    const end = clock.monotonic() + patience.holdMs;
    const pod = async () => (await this.#port.observe()).nodes.find((node) => node.name === name)?.pods[proxy];
    const before = await pod();
    while (clock.monotonic() < end && !signal.aborted) {
      await this.#sleep(Math.min(patience.lookMs, end - clock.monotonic()));
      const problem = changedPod(before, await pod());
      if (problem !== undefined) return problem;
    }
    return undefined;
  }

  #sleep(milliseconds: number): Promise<void> {
    return sleep(this.#options.clock, milliseconds, this.#options.signal);
  }
}

type Pod = NodeState["pods"][ProxyName];

function changedPod(before: Pod, after: Pod): string | undefined {
  if (before === undefined || after === undefined) return "its pod is gone";
  if (after.restarts > before.restarts) return "its pod restarted";
  return after.ready ? undefined : "its pod is no longer ready";
}

function problemText(verified: Exclude<Verified, { readonly kind: "clean" }>): string {
  return verified.kind === "different" ? verified.what : `cannot be verified: ${verified.reason}`;
}

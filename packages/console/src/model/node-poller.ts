import { type Clock, errorText, sleep } from "@fairlead/base";
import type { AgentStatus } from "@fairlead/inspect";
import type { FamilyFindings, ReadResult } from "../protocol/index.ts";

/** What can be looked at of a node. */
export interface NodePorts {
  /** Whether a node can be looked at from here at all. */
  readonly reaches: (node: string) => boolean;
  /** Compares the kernel with the plan, as `fairlead verify -o json`. */
  readonly kernel: (node: string) => Promise<readonly FamilyFindings[]>;
  readonly agent: (node: string) => Promise<AgentStatus>;
}

/** What is known of a node by looking. */
export interface NodeReading {
  readonly kernel?: ReadResult<readonly FamilyFindings[]>;
  readonly agent?: ReadResult<AgentStatus>;
}

export interface NodePollerOptions {
  readonly ports: NodePorts;
  readonly clock: Clock;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly onLook: (node: string, looked: NodeReading) => void;
}

/** Milliseconds between two looks at a node. */
const PAUSE = 1_500;
/** What takes long is asked for more seldom: a node has better things to do. */
const TIMES_AS_LONG = 1;

/** Looks at nodes again and again, for as long as another program has them in view. */
export class NodePoller {
  readonly #options: NodePollerOptions;
  readonly #views = new Map<string, ReadonlySet<string>>();
  readonly #looking = new Map<string, AbortController>();
  readonly #known = new Map<string, NodeReading>();

  constructor(options: NodePollerOptions) {
    this.#options = options;
  }

  /** What is known of a node, however old. */
  of(node: string): NodeReading {
    return this.#known.get(node) ?? {};
  }

  /** The nodes that a page shows now; none, when it is gone. */
  view(page: string, nodes: readonly string[]): void {
    const reached = nodes.filter((node) => this.#options.ports.reaches(node));
    if (reached.length === 0) this.#views.delete(page);
    else this.#views.set(page, new Set(reached));
    const wanted = new Set([...this.#views.values()].flatMap((one) => [...one]));
    for (const node of wanted) if (!this.#looking.has(node)) this.#follow(node);
    for (const [node, stop] of this.#looking) {
      if (wanted.has(node)) continue;
      stop.abort();
      this.#looking.delete(node);
    }
  }

  /** Nobody has anything in view anymore. */
  stop(): void {
    for (const page of [...this.#views.keys()]) this.view(page, []);
  }

  #follow(node: string): void {
    const { ports } = this.#options;
    const stop = new AbortController();
    this.#looking.set(node, stop);
    // Each by itself: a kernel of thousands of services takes seconds, and an agent may stop meanwhile.
    const agent = async () => this.#take(node, { agent: await this.#seen(() => ports.agent(node)) });
    const kernel = async () => this.#take(node, { kernel: await this.#seen(() => ports.kernel(node)) });
    for (const look of [agent, kernel]) void this.#repeat(look, stop.signal);
  }

  async #repeat(look: () => Promise<void>, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      const began = clock.monotonic();
      await look();
      await sleep(clock, Math.max(PAUSE, TIMES_AS_LONG * (clock.monotonic() - began)), signal);
    }
  }

  #take(node: string, part: NodeReading): void {
    const looked = { ...this.#known.get(node), ...part };
    this.#known.set(node, looked);
    this.#options.onLook(node, looked);
  }

  async #seen<T>(look: () => Promise<T>): Promise<ReadResult<T>> {
    const { clock, now } = this.#options;
    const began = clock.monotonic();
    const times = () => ({ at: now(), tookMs: Math.round(clock.monotonic() - began) });
    try {
      const value = await look();
      return { state: "read", ...times(), value };
    } catch (error) {
      return { state: "failed", ...times(), error: errorText(error) };
    }
  }
}

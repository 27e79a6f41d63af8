/** What nodes and sources answer: readings of nodes' agents, flows and their rates, the health of sources. */

import { type Clock, errorText, nextTurn, sleep } from "@fairlead/base";
import { type AgentStatus, type Flow, trafficByService } from "@fairlead/inspect";
import type { SourceReport } from "@fairlead/watch";
import type {
  FamilyFindings,
  FlowCounts,
  FlowsAnswer,
  FlowsSince,
  NodeRow,
  NodeTraffic,
  ReadResult,
  SourceAnswer,
} from "../protocol.ts";
import { bytesOf, hangs } from "../ways.ts";

export interface NodePorts {
  /** Whether a node can be looked at from here at all. */
  readonly reaches: (node: string) => boolean;
  /** Compares the kernel with the plan, as `fairlead verify -o json`. */
  readonly kernel: (node: string) => Promise<readonly FamilyFindings[]>;
  readonly agent: (node: string) => Promise<AgentStatus>;
  /** Sums its connections up; absent: nothing does. */
  readonly traffic?: (node: string) => Promise<NodeTraffic>;
}

/** What can be looked at of a node, one by one: a kernel takes seconds, and an agent may stop meanwhile. */
export type Look = "agent" | "kernel" | "traffic";

export type NodeReading = Pick<NodeRow, Look>;

interface NodePollerOptions {
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
  /** By page, nodes with what is looked at of them: `node-a kernel`. */
  readonly #views = new Map<string, ReadonlySet<string>>();
  readonly #looking = new Map<string, AbortController>();
  readonly #known = new Map<string, NodeReading>();

  constructor(options: NodePollerOptions) {
    this.#options = options;
  }

  of(node: string): NodeReading {
    return this.#known.get(node) ?? {};
  }

  /** The nodes that a page shows now, and what of them; none, when it is gone. */
  view(page: string, nodes: readonly string[], looks: readonly Look[] = ["agent", "kernel"]): void {
    const { ports } = this.#options;
    const shown = nodes.filter((node) => ports.reaches(node)).flatMap((node) => looks.map((look) => `${node} ${look}`));
    if (shown.length === 0) this.#views.delete(page);
    else this.#views.set(page, new Set(shown));
    const wanted = new Set([...this.#views.values()].flatMap((one) => [...one]));
    for (const one of wanted) if (!this.#looking.has(one)) this.#follow(one);
    for (const [one, stop] of this.#looking) {
      if (wanted.has(one)) continue;
      stop.abort();
      this.#looking.delete(one);
      const [node, look] = partsOf(one);
      // No answer is waited for anymore.
      if (this.#known.get(node)?.[look]?.state === "asking") this.#take(node, look, undefined);
    }
  }

  /** No page has anything in view anymore. */
  stop(): void {
    for (const page of [...this.#views.keys()]) this.view(page, []);
  }

  #follow(one: string): void {
    const [node, look] = partsOf(one);
    const ask = this.#options.ports[look];
    if (ask === undefined) return;
    const stop = new AbortController();
    this.#looking.set(one, stop);
    if (this.#known.get(node)?.[look] === undefined) {
      this.#take(node, look, { state: "asking", at: this.#options.now() });
    }
    void this.#repeat(async () => this.#take(node, look, await this.#seen<unknown>(() => ask(node))), stop.signal);
  }

  async #repeat(look: () => Promise<void>, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      const began = clock.monotonic();
      await look();
      await sleep(clock, Math.max(PAUSE, TIMES_AS_LONG * (clock.monotonic() - began)), signal);
    }
  }

  #take<L extends Look>(node: string, look: L, result: ReadResult<unknown> | undefined): void {
    const looked = { ...this.#known.get(node), [look]: result };
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

const MOST_FLOWS = 200;

/** More rows than anybody reads. */
const MOST_SERVICES = 200;

/** What the page shows of connections: the sums, and the connections that hang before the others. */
export function shownFlows(flows: readonly Flow[]): Pick<FlowsAnswer, "traffic" | "flows" | "more"> {
  const traffic = trafficByService(flows);
  const hang = flows.filter(hangs);
  const shown = [...hang, ...flows.filter((flow) => !hangs(flow))].slice(0, MOST_FLOWS);
  return {
    traffic: traffic.slice(0, MOST_SERVICES),
    flows: shown,
    more: {
      services: Math.max(0, traffic.length - MOST_SERVICES),
      flows: flows.length - shown.length,
    },
  };
}

interface FlowLook {
  readonly at: number;
  readonly began: number;
  /** In all looks since it began. */
  readonly total: { readonly opened: number; readonly bytes: number };
  /** Bytes so far, by connection. */
  readonly bytes: ReadonlyMap<string, number>;
}

/** Nodes, or services of a node, that are compared with the look before. */
const MOST_WATCHED = 8;

/** A look after a longer pause begins anew: what came and went meanwhile was never seen. */
const LONGEST_MS = 15_000;

/** Counts the connections in view, and what they carry, from look to look. */
export class FlowRates {
  /** What was looked at last comes last. */
  readonly #looks = new Map<string, FlowLook>();

  /**
   * @param what is looked at: a node, or a service on it
   * @param flows all of its connections
   * @param at milliseconds since the epoch
   * @returns the counts, and what has come since the look before; without that: there was none, or it is too long ago
   */
  take(what: string, flows: readonly Flow[], at: number): { readonly counts: FlowCounts; readonly since?: FlowsSince } {
    const known = this.#looks.get(what);
    const before = known !== undefined && at > known.at && at - known.at <= LONGEST_MS ? known : undefined;
    const bytes = new Map(flows.map((flow) => [idOf(flow), bytesOf(flow)]));
    const came = before === undefined ? { opened: 0, bytes: 0 } : difference(before, bytes);
    const { opened, bytes: carried } = before?.total ?? { opened: 0, bytes: 0 };
    const total = { opened: opened + came.opened, bytes: carried + came.bytes };
    const began = before?.began ?? at;
    this.#keep(what, { at, began, total, bytes });
    const isCounted =
      flows.length === 0 || flows.some(({ sent, received }) => sent !== undefined || received !== undefined);
    const shown = (of: FlowLook["total"]) => ({ opened: of.opened, ...(isCounted && { bytes: of.bytes }) });
    return {
      counts: { began, ...shown(total) },
      ...(before !== undefined && { since: { ms: at - before.at, ...shown(came) } }),
    };
  }

  #keep(what: string, look: FlowLook): void {
    this.#looks.delete(what);
    this.#looks.set(what, look);
    const [oldest] = this.#looks.keys();
    if (this.#looks.size > MOST_WATCHED && oldest !== undefined) this.#looks.delete(oldest);
  }
}

export class SourceHealth {
  readonly #now: () => number;
  #answer: SourceAnswer = {};
  #changed = Promise.withResolvers<void>();
  onChange: () => void = () => {};

  /** @param now milliseconds since the epoch */
  constructor(now: () => number = () => Date.now()) {
    this.#now = now;
  }

  now(): SourceAnswer {
    return this.#answer;
  }

  take(report: SourceReport): void {
    const { failing: before, ...others } = this.#answer;
    if (report.type === "recovered" && before !== undefined) this.#set(others);
    if (report.type !== "failing") return;
    const { problem, server, error, resources, milliseconds } = report;
    const since = this.#now() - milliseconds;
    this.#set({ ...others, failing: { problem, server, error, resources, since } });
  }

  /** Whether Nodes may be listed. */
  setNodesForbidden(are: boolean): void {
    const { nodesForbidden: before = false, ...others } = this.#answer;
    if (are !== before) this.#set({ ...others, ...(are && { nodesForbidden: true }) });
  }

  /** What is known now, and again after each change, until the promise resolves. */
  async *until(end: Promise<unknown>): AsyncGenerator<SourceAnswer, void, void> {
    let isOver = false;
    const ended = end.then(() => {
      isOver = true;
    });
    await nextTurn();
    while (!isOver) {
      const changed = this.#changed.promise;
      yield this.#answer;
      await Promise.race([ended, changed]);
    }
  }

  #set(answer: SourceAnswer): void {
    this.#answer = answer;
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
    this.onChange();
  }
}

/** Of `node-a kernel`. */
function partsOf(one: string): readonly [node: string, look: Look] {
  const at = one.lastIndexOf(" ");
  return [one.slice(0, at), one.slice(at + 1) as Look];
}

function difference(before: FlowLook, now: FlowLook["bytes"]): FlowLook["total"] {
  let [opened, bytes] = [0, 0];
  for (const [id, count] of now) {
    const known = before.bytes.get(id);
    // Of fewer bytes than before it is another one from the same port.
    const isNew = known === undefined || count < known;
    if (isNew) opened += 1;
    bytes += isNew ? count : count - known;
  }
  return { opened, bytes };
}

function idOf({ protocol, client, frontend }: Flow): string {
  return `${protocol} ${client.address} ${client.port} ${frontend.address} ${frontend.port}`;
}

/** Many agents and as many kube-proxies, simulated. */

import { VirtualClock } from "@fairlead/base/testing";
import { FleetCounts, FleetServer, type Limits, seeded } from "@fairlead/testkit/fleet";
import { createApiSource, type Subscription } from "@fairlead/watch";
import type { Progress } from "./measure/bench.ts";
import type { ProxyName } from "./proxy/measured-proxy.ts";

/** As it is kept in `results/fleet.json`. Simulated: no machine has a part in it. */
export interface FleetResult {
  readonly agents: number;
  readonly proxies: Readonly<Record<ProxyName, FleetFigures>>;
}

/** Requests of one node, on average. */
interface HourFigures {
  readonly watches: number;
  readonly lists: number;
  /** Whether the server is alive, of a client that asks for it by a request. */
  readonly signs: number;
  readonly bookmarks: number;
}

/** A fleet whose server was away, and has forgotten what was before. */
interface ReturnFigures {
  readonly secondsAway: number;
  /** Attempts to connect in a second while it was away, of all agents, on average. */
  readonly attemptsPerSecond: number;
  /** From its return until every watch was there again; the least possible with so many seats. */
  readonly seconds: number;
  readonly leastSeconds: number;
  readonly requests: number;
  /** Answered with 429. */
  readonly refused: number;
  readonly lists: number;
  readonly mostInASecond: number;
}

interface FleetFigures {
  readonly hour: HourFigures;
  /** Of all nodes. */
  readonly restart: ReturnFigures;
}

/** Nodes of the hour: one stands for all, some average out its chances. */
const SOME = 50;
const SECONDS_AWAY = 60;

export async function simulateFleet(agents: number, progress: Progress): Promise<FleetResult> {
  const of = async (proxy: ProxyName): Promise<FleetFigures> => {
    progress(proxy);
    const hour = await simulateHour(proxy, Math.min(agents, SOME));
    return { hour, restart: await simulateReturn(proxy, agents, SECONDS_AWAY) };
  };
  return { agents, proxies: { fairlead: await of("fairlead"), "kube-proxy": await of("kube-proxy") } };
}

/**
 * A fifth of what nodes have by default: their priority level has 74 of an API server's 600 seats
 * (kubernetes.io/docs/concepts/cluster-administration/flow-control: system, 30 of 245 shares). Half a second for a list
 * is slow: 10,000 services take less.
 */
const LIMITS: Limits = { seats: 75, queue: 500, listMilliseconds: 500 };
const NO_LIMITS: Limits = { seats: Number.POSITIVE_INFINITY, queue: 0, listMilliseconds: 100 };

const PATHS = {
  services: "/api/v1/services",
  slices: "/apis/discovery.k8s.io/v1/endpointslices",
  node: "/api/v1/nodes",
  serviceCIDRs: "/apis/networking.k8s.io/v1/servicecidrs",
} as const;

/** What each agent watches, as the relay of `--churn` sees it. */
const WATCHES: Readonly<Record<ProxyName, number>> = { fairlead: 3, "kube-proxy": Object.keys(PATHS).length };

const HOUR = 3_600_000;

/** An hour in which nothing changes. Agents have nothing to do with each other in it: a few stand for all. */
async function simulateHour(proxy: ProxyName, agents: number): Promise<HourFigures> {
  const { clock, server, end } = begin(proxy, agents, NO_LIMITS);
  // Watches end at different times by then.
  await clock.advance(HOUR / 4);
  server.counts = new FleetCounts();
  await clock.advance(HOUR);
  const { requests, bookmarks } = server.counts;
  end();
  return {
    watches: requests.watch / agents,
    lists: requests.list / agents,
    signs: requests.sign / agents,
    bookmarks: bookmarks / agents,
  };
}

/** The API server restarts. */
async function simulateReturn(proxy: ProxyName, agents: number, secondsAway: number): Promise<ReturnFigures> {
  const { clock, server, end } = begin(proxy, agents, LIMITS);
  const all = agents * WATCHES[proxy];
  await untilWatched(clock, server, all);
  server.stop();
  server.counts = new FleetCounts();
  await clock.advance(secondsAway * 1000);
  server.up = true;
  const seconds = await untilWatched(clock, server, all);
  const { allRequests, refused, lists, mostInASecond, unanswered } = server.counts;
  end();
  return {
    secondsAway,
    attemptsPerSecond: unanswered / secondsAway,
    seconds,
    leastSeconds: (all / LIMITS.seats) * (LIMITS.listMilliseconds / 1000),
    requests: allRequests,
    refused,
    lists,
    mostInASecond,
  };
}

interface Fleet {
  readonly clock: VirtualClock;
  readonly server: FleetServer;
  end(): void;
}

function begin(proxy: ProxyName, agents: number, limits: Limits): Fleet {
  const clock = new VirtualClock();
  const server = new FleetServer(clock, limits);
  const stop = new AbortController();
  const random = seeded();
  for (let number = 0; number < agents; number++)
    starters[proxy]({ clock, server, random, number, signal: stop.signal });
  return { clock, server, end: () => stop.abort() };
}

interface Agent {
  readonly clock: VirtualClock;
  readonly server: FleetServer;
  readonly random: () => number;
  readonly number: number;
  readonly signal: AbortSignal;
}

const starters: Readonly<Record<ProxyName, (agent: Agent) => void>> = {
  fairlead: ({ clock, server, random, number, signal }) => {
    const subscription: Subscription<unknown> = { decode: (raw) => raw, onChange: () => {} };
    const source = createApiSource({
      connection: { server: "http://api", credentials: async () => ({ headers: {}, tls: {} }) },
      nodeName: `node-${number}`,
      userAgent: "fairlead-proxy/0.0.0",
      transport: server.transport,
      clock,
      random,
    });
    void source.run({ services: subscription, endpointSlices: subscription, node: subscription }, signal);
  },
  "kube-proxy": ({ clock, server, random, signal }) => {
    for (const path of Object.values(PATHS)) {
      // A signal of its own: thousands of listeners of one signal take their time.
      void runClientGoLoop({ clock, random, transport: server.transport, path, signal: AbortSignal.any([signal]) });
    }
  },
};

/** @returns seconds. */
async function untilWatched(clock: VirtualClock, server: FleetServer, all: number): Promise<number> {
  const start = clock.monotonic();
  while (server.watches < all) {
    if (clock.monotonic() - start > HOUR) throw new Error(`${server.watches} of ${all} watches after an hour`);
    await clock.advance(1000);
  }
  return (clock.monotonic() - start) / 1000;
}

/**
 * What one loop of client-go 0.37 asks of a server, and when: tools/cache/reflector.go with WatchList, rest/request.go
 * and rest/with_retry.go below it. Just the requests: it keeps no objects.
 */
interface ClientGoLoop {
  readonly clock: VirtualClock;
  readonly random: () => number;
  readonly transport: FleetServer["transport"];
  readonly path: string;
  readonly signal: AbortSignal;
}

/** Until `signal` aborts. */
async function runClientGoLoop(loop: ClientGoLoop): Promise<void> {
  const delay = backoff(loop);
  const seen = { version: "" };
  while (!loop.signal.aborted) {
    // ListAndWatch: a list, and its watch for as long as that can be resumed.
    let outcome = await ask(loop, listQuery(seen.version), seen);
    while (outcome === "refused" || outcome === "later") {
      await pause(loop, delay());
      if (loop.signal.aborted) return;
      outcome = await ask(loop, listQuery(seen.version), seen);
    }
    while (outcome !== "expired" && !loop.signal.aborted) {
      if (outcome !== "ended") await pause(loop, delay());
      outcome = await ask(loop, `resourceVersion=${seen.version}`, seen);
    }
    await pause(loop, delay());
  }
}

/** Milliseconds: defaultBackoffInit, defaultBackoffMax, defaultBackoffReset; jitter of up to as much again. */
const BACKOFF = { first: 800, longest: 30_000, resetAfter: 120_000 } as const;
/** Of one request that is answered with 429 and Retry-After (rest.Request.maxRetries). */
const RETRIES = 10;

type Outcome = "ended" | "refused" | "later" | "expired";

function listQuery(version: string): string {
  return `sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=${version}`;
}

/** One watch to its end; a 429 is asked again as it says. */
async function ask(loop: ClientGoLoop, query: string, seen: { version: string }): Promise<Outcome> {
  const seconds = Math.floor(300 * (1 + loop.random()));
  const path = `${loop.path}?watch=true&allowWatchBookmarks=true&timeoutSeconds=${seconds}&${query}`;
  for (let attempt = 1; ; attempt++) {
    try {
      const answer = await loop.transport({ path, signal: loop.signal });
      if (answer.status === 410) return "expired";
      if (answer.status !== 429) return await readToEnd(answer, seen);
      if (attempt > RETRIES) return "later";
      await pause(loop, Number(answer.header("retry-after")) * 1000);
    } catch (error) {
      return String(error).includes("ECONNREFUSED") ? "refused" : "ended";
    }
  }
}

async function readToEnd(
  { body }: Awaited<ReturnType<FleetServer["transport"]>>,
  seen: { version: string },
): Promise<"ended"> {
  for await (const chunk of body) {
    seen.version = /"resourceVersion":"(\d+)"/.exec(Buffer.from(chunk).toString())?.[1] ?? seen.version;
  }
  return "ended";
}

function backoff({ clock, random }: ClientGoLoop): () => number {
  let [next, last]: [number, number] = [BACKOFF.first, Number.NEGATIVE_INFINITY];
  return () => {
    if (clock.monotonic() - last > BACKOFF.resetAfter) next = BACKOFF.first;
    last = clock.monotonic();
    const delay = next * (1 + random());
    next = Math.min(2 * next, BACKOFF.longest);
    return delay;
  };
}

function pause({ clock }: ClientGoLoop, milliseconds: number): Promise<void> {
  return new Promise((resolve) => void clock.after(milliseconds, resolve));
}

import type { VirtualClock } from "@fairlead/base/testing";
import type { FleetAnswer, FleetRequest } from "./transport.ts";

/**
 * What one loop of client-go 0.37 asks of a server, and when: tools/cache/reflector.go with WatchList, rest/request.go
 * and rest/with_retry.go below it. Just the requests: it keeps no objects.
 */
export interface ClientGoLoop {
  readonly clock: VirtualClock;
  readonly random: () => number;
  readonly transport: (request: FleetRequest) => Promise<FleetAnswer>;
  readonly path: string;
  readonly signal: AbortSignal;
}

/** Milliseconds: defaultBackoffInit, defaultBackoffMax, defaultBackoffReset; jitter of up to as much again. */
const BACKOFF = { first: 800, longest: 30_000, resetAfter: 120_000 } as const;
/** Of one request that is answered with 429 and Retry-After (rest.Request.maxRetries). */
const RETRIES = 10;

type Outcome = "ended" | "refused" | "later" | "expired";

/** Until `signal` aborts. */
export async function runClientGoLoop(loop: ClientGoLoop): Promise<void> {
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

async function readToEnd({ body }: FleetAnswer, seen: { version: string }): Promise<"ended"> {
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

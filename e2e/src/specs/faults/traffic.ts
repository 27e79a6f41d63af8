import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "@fairlead/lab/provider/node";
import type { Scene } from "../scene.ts";
import type { Figures } from "../spec.ts";

/** Requests that go on until they are stopped, or their time is over; each on a connection of its own. */
export interface Traffic {
  /** Ends it. */
  stop(): Promise<TrafficSeen>;
}

export interface TrafficSeen {
  readonly requests: number;
  /** What came of those that nothing answered. */
  readonly failures: readonly string[];
  /** The longest time without an answer, of any way, in milliseconds. */
  readonly longestGapMs: number;
  /** It had to end before it was stopped. */
  readonly endedEarly: boolean;
}

/** A client and what it asks. */
export interface TrafficFlow {
  readonly from: Client;
  readonly to: string;
  readonly port: number;
  /** Default TCP. */
  readonly protocol?: "TCP" | "UDP";
}

const LONGEST_MS = 60_000;
/** With four requests at a time that is 40 a second on each way. */
const PAUSE_MS = 100;
const BATCH = { count: 4, parallel: 2, timeoutMs: 3_000 } as const;
/** So that all ways together stay below 200 a second. */
const MOST_WAYS = 4;

/**
 * @param later ends it when the spec does, so that it outlives none of its pods
 * @param mostMs how long it may last; default a minute
 */
export function startTraffic(ways: readonly TrafficFlow[], later: Scene["later"], mostMs = LONGEST_MS): Traffic {
  if (ways.length > MOST_WAYS) throw new Error(`traffic has ${MOST_WAYS} ways at most`);
  const stopped = { value: false };
  const lanes = ways.map((way) => lane(way, stopped, mostMs));
  // Heeded where traffic is stopped: a peer may end before that.
  for (const one of lanes) one.catch(() => {});
  const stop = async () => {
    stopped.value = true;
    const seen = await Promise.all(lanes);
    return {
      requests: seen.reduce((sum, { requests }) => sum + requests, 0),
      failures: seen.flatMap(({ failures }) => failures),
      longestGapMs: Math.max(...seen.map(({ longestGapMs }) => longestGapMs)),
      endedEarly: seen.some(({ endedEarly }) => endedEarly),
    };
  };
  later(async () => void (await stop()));
  return { stop };
}

async function lane(
  { from, to, port, protocol = "TCP" }: TrafficFlow,
  stopped: { readonly value: boolean },
  mostMs: number,
): Promise<TrafficSeen> {
  const failures: string[] = [];
  const deadline = performance.now() + mostMs;
  let requests = 0;
  let last = performance.timeOrigin + performance.now();
  let longestGapMs = 0;
  while (!stopped.value && performance.now() < deadline) {
    for (const result of await from.send({ ...BATCH, protocol, to, port })) {
      requests++;
      if (result.kind !== "answer") {
        failures.push(`${from.name} to ${protocol} ${to}: ${result.kind === "error" ? result.code : result.kind}`);
        continue;
      }
      longestGapMs = Math.max(longestGapMs, result.at - last);
      last = Math.max(last, result.at);
    }
    await sleep(PAUSE_MS);
  }
  return { requests, failures, longestGapMs, endedEarly: !stopped.value };
}

/** @throws Error when a request has failed */
export function withoutFailure(seen: TrafficSeen): Figures {
  const reported = figures(seen);
  if (seen.failures.length === 0) return reported;
  const counted = Object.entries(reported).map(([what, value]) => `${what} ${value}`);
  throw new Error(`wanted no failed request; ${counted.join(", ")}: ${[...new Set(seen.failures)].join(", ")}`);
}

export function figures({ requests, failures, longestGapMs }: TrafficSeen): Figures {
  return {
    requests: String(requests),
    failed: String(failures.length),
    "longest gap": `${Math.round(longestGapMs)} ms`,
  };
}

import { setTimeout as sleep } from "node:timers/promises";
import type { ProbeResult } from "@fairlead/lab/peer/protocol";
import type { Client } from "@fairlead/lab/provider/cluster";
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

/** A client with one target, or with several that it asks in turn. */
export type TrafficWay = TrafficFlow | readonly TrafficFlow[];

/** The end of a hang; a fault takes minutes on a busy machine. */
const LONGEST_MS = 600_000;
/** With four requests at a time that is 40 a second on each way. */
const PAUSE_MS = 100;
const AT_A_TIME = 4;
const BATCH = { parallel: 2, timeoutMs: 15_000 } as const;
const MOST_SHOWN = 20;
/** So that all ways together stay below 200 a second. */
const MOST_WAYS = 4;

/**
 * @param later ends it when the spec does, so that it outlives none of its pods
 * @param mostMs how long it may last; default ten minutes
 */
export function startTraffic(ways: readonly TrafficWay[], later: Scene["later"], mostMs = LONGEST_MS): Traffic {
  if (ways.length > MOST_WAYS) throw new Error(`traffic has ${MOST_WAYS} ways at most`);
  const stopped = { value: false };
  const lanes = ways.map((way) => lane("from" in way ? [way] : way, stopped, mostMs));
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
  flows: readonly TrafficFlow[],
  stopped: { readonly value: boolean },
  mostMs: number,
): Promise<TrafficSeen> {
  const failures: string[] = [];
  const deadline = performance.now() + mostMs;
  let requests = 0;
  let last = performance.timeOrigin + performance.now();
  let longestGapMs = 0;
  for (let turn = 0; !stopped.value && performance.now() < deadline; turn++) {
    for (const { flow, result } of await round(flows, turn)) {
      requests++;
      if (result.kind !== "answer") {
        failures.push(failureText(flow, result));
        continue;
      }
      longestGapMs = Math.max(longestGapMs, result.at - last);
      last = Math.max(last, result.at);
    }
    await sleep(PAUSE_MS);
  }
  return { requests, failures, longestGapMs, endedEarly: !stopped.value };
}

/** Some requests: to the only target, or one to each of the next ones. */
async function round(flows: readonly TrafficFlow[], turn: number) {
  const width = Math.min(AT_A_TIME, flows.length);
  const next = Array.from({ length: width }, (_, at) => flows[(turn * width + at) % flows.length]);
  const asked = next.flatMap((flow) => (flow === undefined ? [] : [ask(flow, Math.ceil(AT_A_TIME / width))]));
  return (await Promise.all(asked)).flat();
}

async function ask(flow: TrafficFlow, count: number) {
  const { from, to, port, protocol = "TCP" } = flow;
  const results = await from.send({ ...BATCH, count, protocol, to, port });
  return results.map((result) => ({ flow, result }));
}

/** With the moment at which it was known, as logs have it. */
function failureText({ from, to, protocol = "TCP" }: TrafficFlow, result: ProbeResult): string {
  const at = new Date(result.at).toISOString().slice("2030-01-01T".length, -1);
  return `${at} ${from.name} to ${protocol} ${to}: ${result.kind === "error" ? result.code : result.kind}`;
}

/** @throws Error when a request has failed */
export function withoutFailure(seen: TrafficSeen): Figures {
  const reported = figures(seen);
  if (seen.failures.length === 0) return reported;
  const counted = Object.entries(reported).map(([what, value]) => `${what} ${value}`);
  const first = seen.failures.toSorted().slice(0, MOST_SHOWN);
  throw new Error(`wanted no failed request; ${counted.join(", ")}; the first: ${first.join(", ")}`);
}

export function figures({ requests, failures, longestGapMs }: TrafficSeen): Figures {
  return {
    requests: String(requests),
    failed: String(failures.length),
    "longest gap": `${Math.round(longestGapMs)} ms`,
  };
}

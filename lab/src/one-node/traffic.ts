import { setTimeout as sleep } from "node:timers/promises";
import { clientA, type Host, NODE_A, outside } from "@fairlead/testkit";
import type { Peer } from "../peer/process.ts";
import type { Ending } from "../peer/protocol.ts";
import type { Lab } from "../two-nodes/lab.ts";
import { web } from "./objects.ts";

/** Requests that go on until they are stopped; each on a connection of its own. */
export interface Traffic {
  /**
   * Ends it, once there were that many requests.
   *
   * @param least so many prove something; a busy machine takes its time for them
   * @returns what came of those that no pod answered
   */
  stop(least?: number): Promise<{ readonly requests: number; readonly failures: readonly string[] }>;
}

/** Refusals and answers of others come at once; an answer of a busy machine may take seconds. */
const BATCH = { protocol: "TCP", count: 8, parallel: 4, timeoutMs: 15_000 } as const;
/** All ways together leave time for what is tested. */
const PAUSE_MS = 50;

/** Who asks whom. */
export interface TrafficFlow {
  readonly from: Host;
  readonly to: string;
  readonly port: number;
  /** Default TCP. */
  readonly protocol?: "TCP" | "UDP";
}

/** A pod at the ClusterIP in both families, a client outside at the node port. */
export const commonFlows: readonly TrafficFlow[] = [
  { from: clientA, to: web.clusterIP.IPv4, port: web.port },
  { from: clientA, to: web.clusterIP.IPv6, port: web.port },
  { from: outside, to: NODE_A.addresses.IPv4, port: web.nodePort },
];

/** The node at localhost, which only iptables mode serves. */
export const localhostFlow: TrafficFlow = { from: NODE_A, to: "127.0.0.1", port: web.nodePort };

export function startTraffic(lab: Lab, ways: readonly TrafficFlow[] = [...commonFlows, localhostFlow]): Traffic {
  const state: State = { requests: 0, least: Number.POSITIVE_INFINITY };
  const lanes = ways.map(({ from, ...target }) => lane(lab.peer(from), target, state));
  // A test that gives up does not stop it: it ends with the peers, and then nobody waits for it.
  for (const one of lanes) one.catch(() => {});
  return {
    stop: async (least = 0) => {
      state.least = least;
      const failures = (await Promise.all(lanes)).flat();
      return { requests: state.requests, failures };
    },
  };
}

/** Of all lanes together; until they are stopped there is no end of requests. */
interface State {
  requests: number;
  least: number;
}

async function lane(peer: Peer, target: Omit<TrafficFlow, "from">, state: State): Promise<readonly string[]> {
  const failures: string[] = [];
  while (state.requests < state.least) {
    const results = await peer.send({ ...BATCH, ...target });
    state.requests += results.length;
    for (const result of results) {
      const answered = result.kind === "answer" && result.server.startsWith("web-");
      if (!answered) failures.push(`${target.protocol ?? "TCP"} ${target.to}: ${endingText(result)}`);
    }
    await sleep(PAUSE_MS);
  }
  return failures;
}

function endingText(result: Ending): string {
  if (result.kind === "answer") return `answered by ${result.server}`;
  return result.kind === "error" ? result.code : result.kind;
}

import { setTimeout as sleep } from "node:timers/promises";
import { clientA, type Host, NODE_A, outside } from "@fairlead/testkit";
import type { Peer } from "../peer/process.ts";
import type { Ending } from "../peer/protocol.ts";
import type { Lab } from "../two-nodes/lab.ts";
import { web } from "./objects.ts";

/** Requests that go on until they are stopped; each on a connection of its own. */
export interface Traffic {
  /** Ends it. Gives how many requests there were, and what came of those that no pod answered. */
  stop(): Promise<{ readonly requests: number; readonly failures: readonly string[] }>;
}

const BATCH = { protocol: "TCP", count: 8, parallel: 4, timeoutMs: 3_000 } as const;
/** All ways together leave time for what is tested. */
const PAUSE_MS = 50;
const LONGEST_MS = 60_000;

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
  const stopped = { value: false };
  const lanes = ways.map(({ from, ...target }) => lane(lab.peer(from), target, stopped));
  return {
    stop: async () => {
      stopped.value = true;
      const seen = await Promise.all(lanes);
      return {
        requests: seen.reduce((sum, { requests }) => sum + requests, 0),
        failures: seen.flatMap(({ failures }) => failures),
      };
    },
  };
}

async function lane(peer: Peer, target: Omit<TrafficFlow, "from">, stopped: { readonly value: boolean }) {
  const failures: string[] = [];
  const deadline = performance.now() + LONGEST_MS;
  let requests = 0;
  while (!stopped.value && performance.now() < deadline) {
    const results = await peer.send({ ...BATCH, ...target });
    requests += results.length;
    for (const result of results) {
      const answered = result.kind === "answer" && result.server.startsWith("web-");
      if (!answered) failures.push(`${target.protocol ?? "TCP"} ${target.to}: ${endingText(result)}`);
    }
    await sleep(PAUSE_MS);
  }
  return { requests, failures };
}

function endingText(result: Ending): string {
  if (result.kind === "answer") return `answered by ${result.server}`;
  return result.kind === "error" ? result.code : result.kind;
}

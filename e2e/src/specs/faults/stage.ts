/** Services under steady requests while something happens. */

import { setTimeout as sleep } from "node:timers/promises";
import type { ProbeResult } from "@fairlead/lab/peer/protocol";
import type { Client, ClusterNode } from "@fairlead/lab/provider/cluster";
import { now } from "@fairlead/lab/support/wait-until";
import { expectAnswers } from "../expect.ts";
import { type Figures, nearAndFar, type Scene, type Spec } from "../spec.ts";

export { each, restoreAgents } from "../spec.ts";

export const PORTS = [{ port: 80 }];

/** Two endpoints that serve all the while, and all clients that call them. */
export async function openStage(scene: Scene) {
  const { cluster, family } = scene;
  const [first, second] = scene.nodes;
  const { caller, by } = await nearAndFar(scene);
  const other = await scene.pod({ node: second });
  const service = await scene.service("web", { type: "NodePort", selector: { app: "web" }, ports: PORTS });
  const atService = { to: service.clusterIP, port: 80 };
  const atNode = { to: second.addresses[family] ?? "", port: service.nodePort };
  await expectAnswers(caller, atService, { by });
  await expectAnswers(other, atService, { by });
  await expectAnswers(cluster.outside, atNode, { by });
  const ways = [
    { from: caller, ...atService },
    { from: other, ...atService },
    { from: first, ...atService },
    { from: cluster.outside, ...atNode },
  ];
  return { caller, by, atService, ways };
}

export function withoutLoss(
  name: string,
  fault: (scene: Scene) => Promise<Figures | undefined> | Promise<void>,
  fields: Pick<Spec, "unfit" | "about"> = {},
): Spec {
  return {
    suite: "faults",
    eachFamily: false,
    ...fields,
    name,
    run: async (scene) => {
      const { ways, caller, by, atService } = await openStage(scene);
      const traffic = startTraffic(ways, scene.later, longestTraffic(scene));
      await sleep(1_000);
      const more = await fault(scene);
      await sleep(1_000);
      const seen = withoutFailure(await traffic.stop());
      await expectAnswers(caller, atService, { by });
      return { ...seen, ...more };
    },
  };
}

export async function expectLate(
  scene: Scene,
  { name = "late", withinMs }: { readonly name?: string; readonly withinMs?: number } = {},
): Promise<void> {
  const late = await scene.pod({ node: scene.nodes[0], app: name });
  const service = await scene.service(name, { selector: { app: name }, ports: PORTS });
  const target = { to: service.clusterIP, port: 80, ...(withinMs !== undefined && { withinMs }) };
  for (const node of scene.nodes) await expectAnswers(node, target, { by: [late] });
}

/** How long traffic may last, in milliseconds: everything takes longer in a guest, where requests are few. */
function longestTraffic({ cluster }: Scene): number | undefined {
  return cluster.ownKernel === true ? 300_000 : undefined;
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

export interface TrafficFlow {
  readonly from: Client;
  readonly to: string;
  readonly port: number;
  /** Default TCP. */
  readonly protocol?: "TCP" | "UDP";
}

/** A client with one target, or with several that it asks in turn. */
type TrafficWay = TrafficFlow | readonly TrafficFlow[];

/** The end of a hang; a fault takes minutes on a busy machine. */
const LONGEST_MS = 600_000;

/** Requests that go on until they are stopped, or their time is over; each on a connection of its own. */
interface Traffic {
  stop(): Promise<TrafficSeen>;
}

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

const MOST_SHOWN = 20;

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

export async function fullSyncs({ agent }: ClusterNode): Promise<number> {
  const text = await agent.get("/metrics");
  const counts = text.matchAll(/^kubeproxy_sync_full_proxy_rules_duration_seconds_count\{.*\} (\d+)$/gm);
  return Array.from(counts, ([, count]) => Number(count)).reduce((sum, count) => sum + count, 0);
}

/** With four requests at a time that is 40 a second on each way. */
const PAUSE_MS = 100;
const AT_A_TIME = 4;
const BATCH = { parallel: 2, timeoutMs: 15_000 } as const;

async function lane(
  flows: readonly TrafficFlow[],
  stopped: { readonly value: boolean },
  mostMs: number,
): Promise<TrafficSeen> {
  const failures: string[] = [];
  const deadline = performance.now() + mostMs;
  let requests = 0;
  let last = now();
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

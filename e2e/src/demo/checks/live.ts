import { clientA, webB1 } from "@fairlead/testkit";
import { demoObjects, WEB, webPods } from "../services.ts";
import type { Check, DemoEnvironment, Reply } from "../stage.ts";

/** So many requests in a row without the removed endpoint: two thirds to the power of 40 is nothing. */
const CALM = 40;

const REQUEST = `client-a → ${WEB.clusterIP}:80`;

/** An endpoint goes while requests go on: how long until none reaches it, and does any fail? */
export const removedLive: Check = async (stage) => {
  const since = await stage.change(demoObjects(webPods.filter((pod) => pod !== webB1)));
  const replies = await askUntil(stage, (seen) => lastCalm(seen) !== undefined);
  const calm = lastCalm(replies);
  const seen = calm === undefined ? `${webB1.name} still answers` : `traffic follows after ${ms(calm.at - since)}`;
  return [finding("endpoint removed", `${seen}, ${failures(replies)}`, calm !== undefined && failed(replies) === 0)];
};

/** It comes back: how long until the first request reaches it? */
export const addedLive: Check = async (stage) => {
  const since = await stage.change(demoObjects());
  const replies = await askUntil(stage, (seen) => seen.some(({ end }) => end === webB1.name));
  const first = replies.find(({ end }) => end === webB1.name);
  const seen = first === undefined ? `${webB1.name} never answers` : `traffic follows after ${ms(first.at - since)}`;
  return [finding("endpoint added", `${seen}, ${failures(replies)}`, first !== undefined && failed(replies) === 0)];
};

async function askUntil(
  stage: DemoEnvironment,
  enough: (replies: readonly Reply[]) => boolean,
): Promise<readonly Reply[]> {
  const deadline = performance.now() + stage.patienceMs;
  const replies: Reply[] = [];
  while (!enough(replies) && performance.now() < deadline) {
    const batch = await stage.ask({ from: clientA, to: WEB.clusterIP, port: 80, count: 20 });
    replies.push(...[...batch].sort((a, b) => a.at - b.at));
  }
  return replies;
}

/** The first of at least `CALM` replies at the end that came from others than the removed endpoint. */
function lastCalm(replies: readonly Reply[]): Reply | undefined {
  const stale = replies.findLastIndex(({ end }) => end === webB1.name);
  return replies.length - stale - 1 >= CALM ? replies[stale + 1] : undefined;
}

function failed(replies: readonly Reply[]): number {
  return replies.filter(({ end }) => !webPods.some(({ name }) => name === end)).length;
}

function failures(replies: readonly Reply[]): string {
  return `${failed(replies)} of ${replies.length} requests failed`;
}

function finding(name: string, seen: string, ok: boolean) {
  return { name, request: REQUEST, seen, ok };
}

function ms(duration: number): string {
  return `${duration < 10 ? duration.toFixed(1) : Math.round(duration)} ms`;
}

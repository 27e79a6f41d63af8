/** What the demo shows, one check each. */

import { clientA, NODE_A, nginxCalico, outside, ovnClient, webB1 } from "@fairlead/testkit";
import {
  type Check,
  type DemoEnvironment,
  demoObjects,
  type Finding,
  NGINX_CALICO_IP,
  NGINX_OVN_IP,
  NO_ENDPOINTS_IP,
  type Reply,
  STICKY_IP,
  WEB,
  webPods,
} from "./stage.ts";

const foundingCase: Check = async (stage) => {
  const replies = await stage.ask({ from: clientA, to: NGINX_CALICO_IP, port: 80, count: 5 });
  const ok = every(replies, nginxCalico.name);
  return [{ name: "nginx-calico", request: `client-a → ${NGINX_CALICO_IP}:80`, seen: tally(replies), ok }];
};

/** Bounds that a fair spread leaves once in many millions of runs. */
const FAIR = { requests: 300, least: 0.19, most: 0.48 } as const;

const spread: Check = async (stage) => {
  const replies = await stage.ask({ from: clientA, to: WEB.clusterIP, port: 80, count: FAIR.requests });
  const counts = [...countEnds(replies)];
  const fair = counts.every(([, count]) => count >= FAIR.least * FAIR.requests && count <= FAIR.most * FAIR.requests);
  const ok =
    fair && counts.length === webPods.length && webPods.every(({ name }) => replies.some(({ end }) => end === name));
  return [
    { name: "spread", request: `client-a → ${WEB.clusterIP}:80, ${FAIR.requests} times`, seen: shares(replies), ok },
  ];
};

const affinity: Check = async (stage) =>
  Promise.all(
    [clientA, outside].map(async (from) => {
      const replies = await stage.ask({ from, to: STICKY_IP, port: 80, count: 1 });
      const more = await stage.ask({ from, to: STICKY_IP, port: 80, count: 19 });
      const all = [...replies, ...more];
      const ok = countEnds(all).size === 1 && webPods.some(({ name }) => every(all, name));
      return { name: "affinity", request: `${from.name} → ${STICKY_IP}:80`, seen: tally(all), ok };
    }),
  );

const nodePort: Check = async (stage) =>
  Promise.all(
    stage.nodePortsAt.map((to) =>
      atNodePort(stage, to.startsWith("127.") ? { from: NODE_A, to, source: to } : { from: outside, to }),
    ),
  );

/** The source that servers see: pods of the own network keep their address, other clients have the node's. */
const masquerading: Check = async (stage) =>
  Promise.all(
    [clientA, ovnClient, outside, NODE_A].map(async (from) => {
      const own = from.addresses.IPv4;
      const expected = from === clientA ? own : NODE_A.addresses.IPv4;
      const replies = await stage.ask({ from, to: NGINX_CALICO_IP, port: 80, count: 5 });
      const seen = senders(replies).join(", ");
      return {
        name: "masquerading",
        request: `${from.name} (${own}) → ${NGINX_CALICO_IP}:80`,
        seen: `the pod sees ${seen === own && from !== NODE_A ? `${seen}, its own address` : seen}`,
        ok: every(replies, nginxCalico.name) && seen === expected,
      };
    }),
  );

const noEndpoints: Check = async (stage) => {
  const replies = await stage.ask({ from: clientA, to: NO_ENDPOINTS_IP, port: 80, count: 5 });
  const ok = every(replies, "refused");
  return [{ name: "no endpoints", request: `client-a → ${NO_ENDPOINTS_IP}:80`, seen: `${tally(replies)} at once`, ok }];
};

/** The other network's service: not a rule names it, and its packets go out as they came in. */
const foreignService: Check = async (stage) => {
  const rules = await stage.rules();
  const naming = (address: string) => rules.filter((rule) => rule.includes(address)).length;
  const own = naming(NGINX_CALICO_IP);
  const foreign = naming(NGINX_OVN_IP);
  const grep = {
    name: "nginx-ovn",
    request: `rules that name ${NGINX_OVN_IP}`,
    seen: `${foreign} of ${rules.length} (${own} name ${NGINX_CALICO_IP})`,
    ok: foreign === 0 && own > 0,
  };
  const traffic = [ovnClient, clientA].map(async (from) => {
    const replies = await stage.ask({ from, to: NGINX_OVN_IP, port: 80, count: 5 });
    const untouched = every(replies, "untouched") && senders(replies).join() === from.addresses.IPv4;
    const seen = untouched ? `leaves the node as sent, from ${from.addresses.IPv4}` : tally(replies);
    return { name: "nginx-ovn", request: `${from.name} → ${NGINX_OVN_IP}:80`, seen, ok: untouched };
  });
  return [grep, ...(await Promise.all(traffic))];
};

/** An endpoint goes while requests go on: how long until none reaches it, and does any fail? */
const removedLive: Check = async (stage) => {
  const since = await stage.change(demoObjects(webPods.filter((pod) => pod !== webB1)));
  const replies = await askUntil(stage, (seen) => lastCalm(seen) !== undefined);
  const calm = lastCalm(replies);
  const seen = calm === undefined ? `${webB1.name} still answers` : `traffic follows after ${ms(calm.at - since)}`;
  return [finding("endpoint removed", `${seen}, ${failures(replies)}`, calm !== undefined && failed(replies) === 0)];
};

/** It comes back: how long until the first request reaches it? */
const addedLive: Check = async (stage) => {
  const since = await stage.change(demoObjects());
  const replies = await askUntil(stage, (seen) => seen.some(({ end }) => end === webB1.name));
  const first = replies.find(({ end }) => end === webB1.name);
  const seen = first === undefined ? `${webB1.name} never answers` : `traffic follows after ${ms(first.at - since)}`;
  return [finding("endpoint added", `${seen}, ${failures(replies)}`, first !== undefined && failed(replies) === 0)];
};

/** So many requests in a row without the removed endpoint: two thirds to the power of 40 is nothing. */
const CALM = 40;

const REQUEST = `client-a → ${WEB.clusterIP}:80`;

/** What can be seen without rules: there is one client, this machine, and no other program's address to keep. */
export const localChecks: readonly Check[] = [
  foundingCase,
  spread,
  removedLive,
  addedLive,
  affinity,
  (stage) =>
    nowhere(stage, { name: "no endpoints", service: "no-endpoints", to: NO_ENDPOINTS_IP, row: /none: no endpoints$/ }),
  // Another network's service is not even in the table.
  (stage) => nowhere(stage, { name: "nginx-ovn", service: "nginx-ovn", to: NGINX_OVN_IP, row: undefined }),
];

async function atNodePort(
  stage: DemoEnvironment,
  ask: { from: typeof outside; to: string; source?: string },
): Promise<Finding> {
  const replies = await stage.ask({ ...ask, port: WEB.nodePort, count: 30 });
  const ok = replies.every(({ end }) => webPods.some(({ name }) => name === end));
  return { name: "node port", request: `${ask.from.name} → ${ask.to}:${WEB.nodePort}`, seen: tally(replies), ok };
}

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

interface Nowhere {
  readonly name: string;
  readonly service: string;
  readonly to: string;
  /** What the table says of it; undefined: nothing. */
  readonly row: RegExp | undefined;
}

async function nowhere(stage: DemoEnvironment, { name, service, to, row }: Nowhere) {
  const table = await stage.rules();
  const line = table.find((each) => each.startsWith(`default/${service} `));
  const replies = await stage.ask({ from: clientA, to, port: 80, count: 1 });
  const said = row === undefined ? line === undefined : line !== undefined && row.test(line);
  const ok = said && replies.every(({ end }) => end === "no local port");
  const shown = line?.replace(/^.*?(none: )/, "$1") ?? "in no row of the table";
  return [{ name, request: `client-a → ${to}:80`, seen: ok ? shown : tally(replies), ok }];
}

/** How often each end was reached, most often first, then by name. */
function countEnds(replies: readonly Reply[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { end } of replies) counts.set(end, (counts.get(end) ?? 0) + 1);
  return new Map([...counts].sort(([a, na], [b, nb]) => nb - na || a.localeCompare(b)));
}

/** `web-a1 34 %, web-b1 33 %, web-a2 33 %` */
function shares(replies: readonly Reply[]): string {
  return [...countEnds(replies)]
    .map(([end, count]) => `${end} ${Math.round((count / replies.length) * 100)} %`)
    .join(", ");
}

/** `20 of 20 to web-a1`, `3 to refused, 1 to silence` */
function tally(replies: readonly Reply[]): string {
  const counts = [...countEnds(replies)];
  const [only] = counts;
  if (only !== undefined && counts.length === 1) return `${only[1]} of ${replies.length} ${only[0]}`;
  return counts.map(([end, count]) => `${count} ${end}`).join(", ");
}

function every(replies: readonly Reply[], end: string): boolean {
  return replies.length > 0 && replies.every((reply) => reply.end === end);
}

function senders(replies: readonly Reply[]): readonly string[] {
  return [...new Set(replies.flatMap(({ seenAs }) => (seenAs === undefined ? [] : [seenAs])))];
}

const NAME = 17;
const SHOWN_REQUEST = 42;

const tableHead = `  ${"CHECK".padEnd(NAME)}${"REQUEST".padEnd(SHOWN_REQUEST)}SEEN`;

const checks: readonly Check[] = [
  foundingCase,
  spread,
  removedLive,
  addedLive,
  affinity,
  nodePort,
  masquerading,
  noEndpoints,
  foreignService,
];

export async function play(stage: DemoEnvironment, print: (line: string) => void): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  print(tableHead);
  for (const check of stage.checks ?? checks) {
    for (const finding of await check(stage)) {
      print(tableLine(finding, findings.at(-1)));
      findings.push(finding);
    }
  }
  return findings;
}

/** The closing line: what it proved, or what failed. */
export function verdict(stage: DemoEnvironment, findings: readonly Finding[], left: readonly string[]): string {
  const failed = findings.filter(({ ok }) => !ok);
  const problems = [
    ...failed.map(({ name, request, seen }) => `${name} (${request}): ${seen}`),
    ...left.map((what) => `left behind: ${what}`),
  ];
  if (problems.length > 0) return ["Failed:", ...problems.map((problem) => `  ${problem}`)].join("\n");
  return `Proved ${stage.proof}, ${findings.length} of ${findings.length} checks: our services are served, the other network's are ignored, nothing is left behind.`;
}

function tableLine({ name, request, seen, ok }: Finding, before: Finding | undefined): string {
  const shown = before?.name === name ? "" : name;
  return `${ok ? "✓" : "✗"} ${shown.padEnd(NAME)}${request.padEnd(SHOWN_REQUEST)}${seen}`;
}

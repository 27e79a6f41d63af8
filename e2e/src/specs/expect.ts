/** What clients see, waited for and then asked many times. */

import { setTimeout as sleep } from "node:timers/promises";
import { PATIENCE_MS } from "@fairlead/base/testing";
import type { Probe, ProbeResult } from "@fairlead/lab/peer/protocol";
import type { Client, ClusterNode } from "@fairlead/lab/provider/cluster";
import { restAfter } from "@fairlead/lab/support/wait-until";

export interface Target {
  readonly to: string;
  readonly port: number;
  /** Default TCP. */
  readonly protocol?: "TCP" | "UDP";
  /** An address of the client's own to send from. */
  readonly source?: string;
  /** How long it may take until the first requests fit. */
  readonly withinMs?: number;
}

interface Answered {
  /** The pods that may answer; each of them must, in some of the requests. */
  readonly by: readonly { readonly name: string }[];
  readonly seen?: string;
  /** A source that no server may see. */
  readonly notSeen?: string;
}

interface Round {
  readonly requests: number;
  readonly timeoutMs: number;
}

/** So many that one of the endpoints is missed once in 2²³ rounds; time for a SYN to be sent four times. */
function answersOf(endpoints: number): Round {
  const most = Math.log(2 ** -23 / endpoints) / Math.log(1 - 1 / Math.max(2, endpoints));
  return { requests: Math.round(most), timeoutMs: 15_000 };
}

export async function expectAnswers(from: Client, target: Target, wanted: Answered): Promise<void> {
  const names = wanted.by.map(({ name }) => name);
  const what = `${describe(from, target)}: an answer of ${names.join(" and ")}`;
  await expectRounds(
    what,
    from,
    target,
    (results) => {
      const wrong = results.filter((result) => !isAnswer(result, names, wanted));
      const silent = names.filter(
        (name) => !results.some((result) => result.kind === "answer" && result.server === name),
      );
      if (results.length > 1 && wrong.length === 0) return silent.map((name) => `${name} never answered`);
      return wrong.map(resultText);
    },
    answersOf(names.length),
  );
}

export function expectRefused(from: Client, target: Target): Promise<void> {
  return expectKind(from, target, "refused");
}

export function expectLost(from: Client, target: Target): Promise<void> {
  return expectKind(from, target, "lost");
}

/**
 * A refusal comes at once, and only what is wrong takes the whole time; a guest on a busy machine may need seconds.
 */
const REFUSALS: Round = { requests: 8, timeoutMs: 15_000 };

/** No rule has translated the address: the packet comes to the end of the network, which says that there is no way. */
export async function expectUntouched(from: Client, target: Target): Promise<void> {
  const what = `${describe(from, target)}: untranslated, so unreachable`;
  const unreachable = (result: ProbeResult) =>
    result.kind === "error" && ["EHOSTUNREACH", "ENETUNREACH", "EACCES"].includes(result.code);
  await expectRounds(
    what,
    from,
    target,
    (results) => results.filter((result) => !unreachable(result)).map(resultText),
    REFUSALS,
  );
}

const TIMEOUT_MS = 60_000;

/** One answer of so many bytes, which no tunnel lets through whose MTU is said too large. */
export async function expectBytes(from: Client, { to, port }: Target, bytes: number): Promise<void> {
  const once = { count: 1, parallel: 1, timeoutMs: TIMEOUT_MS };
  const [result] = await from.send({ protocol: "TCP", to, port, padding: bytes, ...once });
  const came = result?.kind === "answer" ? result.padding : result?.kind;
  if (came !== bytes) throw new Error(`wanted ${bytes} bytes for ${from.name} from ${to}, came ${came}`);
}

const PAUSE_MS = 50;

/**
 * Asks until there is nothing left to complain of.
 *
 * @param patienceMs a change takes a second until clients see it, API server and endpoint slice controller included;
 * the default is for a slow guest on a busy machine
 */
export async function until(
  what: string,
  complaint: () => Promise<string | undefined>,
  patienceMs: number = PATIENCE_MS,
): Promise<void> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const asked = performance.now();
    const last = await complaint();
    if (last === undefined) return;
    if (performance.now() > deadline) throw new Error(`wanted ${what}; came ${last}`);
    await sleep(restAfter(performance.now() - asked, PAUSE_MS));
  }
}

export async function requireLogged(
  { agent }: Pick<ClusterNode, "agent">,
  wanted: (line: string) => boolean,
): Promise<void> {
  await until("a line in the agent's log", async () => {
    const log = await agent.log();
    return log.split("\n").some(wanted) ? undefined : `no such line:\n${log}`;
  });
}

export async function expectNoAlarm({ name, agent }: ClusterNode, before = ""): Promise<void> {
  const lines = (await agent.log()).slice(before.length).split("\n");
  const alarms = lines.filter((line) => /rules (still )?differ/i.test(line));
  if (alarms.length > 0) throw new Error(`wanted no line that the rules of ${name} differ:\n${alarms.join("\n")}`);
}

/**
 * Longer than the kernel's first repetition of a SYN, after a second: the ICMPv6 answer to the first one comes while
 * connect() holds the socket, and is not heeded.
 */
const SILENCE: Round = { requests: 8, timeoutMs: 1_500 };

const AT_ONCE = 8;

async function expectKind(from: Client, target: Target, kind: "refused" | "lost"): Promise<void> {
  const what = `${describe(from, target)}: ${kind}`;
  const check = (results: readonly ProbeResult[]) => results.filter((result) => result.kind !== kind).map(resultText);
  await expectRounds(what, from, target, check, kind === "lost" ? SILENCE : REFUSALS);
}

/**
 * Waits until one request fits and then a round of them, which may still meet the end of a change; the round after that
 * must fit at once.
 */
async function expectRounds(
  what: string,
  from: Client,
  { withinMs, ...target }: Target,
  complaints: (results: readonly ProbeResult[]) => readonly string[],
  { requests, timeoutMs }: Round,
): Promise<void> {
  const ask = async (count: number) => {
    const probe: Probe = { protocol: "TCP", ...target, count, parallel: Math.min(count, AT_ONCE), timeoutMs };
    const found = complaints(await from.send(probe));
    return found.length === 0 ? undefined : [...new Set(found)].join(", ");
  };
  await until(what, async () => (await ask(1)) ?? (await ask(requests)), withinMs);
  const after = await ask(requests);
  if (after !== undefined) throw new Error(`wanted ${what}; later, of ${requests} requests came ${after}`);
}

function isAnswer(result: ProbeResult, names: readonly string[], { seen, notSeen }: Answered): boolean {
  if (result.kind !== "answer" || !names.includes(result.server)) return false;
  const source = addressOf(result.remote);
  return (seen === undefined || source === seen) && source !== notSeen;
}

/** `a.b.c.d:port`, `[v6]:port` → the address */
function addressOf(endpoint: string): string {
  return endpoint.slice(0, endpoint.lastIndexOf(":")).replace(/^\[|\]$/g, "");
}

function resultText(result: ProbeResult): string {
  if (result.kind === "answer") return `${result.server} seeing ${addressOf(result.remote)}`;
  return result.kind === "error" ? result.code : result.kind;
}

function describe(from: Client, { protocol = "TCP", to, port, source }: Target): string {
  return `${from.name}${source === undefined ? "" : ` as ${source}`} to ${protocol} ${to} port ${port}`;
}

/** What servers and clients do in their pods. */

import { createSocket } from "node:dgram";
import { resolve4, resolve6 } from "node:dns/promises";
import { createServer, get } from "node:http";
import { isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { IPFamily } from "@fairlead/base";

/** What is asked for from one place; JSON values only: it goes to a pod as an argument. */
export interface Probe {
  readonly id: number;
  readonly protocol: "TCP" | "UDP";
  readonly address: string;
  readonly port: number;
  /** Asked for in place of `address`: a name, in this family. */
  readonly name?: { readonly text: string; readonly family: IPFamily };
  /** As many, each over a connection of its own. */
  readonly requests: number;
  readonly expected: Expected;
}

export type Expected =
  | {
      readonly kind: "answered";
      /** Names of servers: no other may answer. */
      readonly by: readonly string[];
      /** Each of them has to answer; only one, whichever; or any. */
      readonly spread: "each" | "one" | "any";
      /** What servers see is an address of the client itself. */
      readonly seesClient?: true;
      /** Servers must see none of these addresses. */
      readonly notSeen?: readonly string[];
    }
  /** No answer, and not a refusal by a timeout: an error at once. */
  | { readonly kind: "refused" }
  /** No server answers. */
  | { readonly kind: "unanswered" }
  | { readonly kind: "resolved"; readonly addresses: readonly string[] };

export type Answer =
  | { readonly by: string; readonly seen: string }
  | { readonly resolved: readonly string[] }
  /** `ECONNREFUSED`, `timeout` */
  | { readonly error: string };

export interface Observed {
  readonly id: number;
  /** What is wrong; absent: it is right. */
  readonly complaint?: string;
}

export type Role =
  | { readonly kind: "serve"; readonly name: string; readonly port: number }
  | {
      readonly kind: "ask";
      readonly probes: readonly Probe[];
      readonly patienceMs: number;
      /** Asks again and again: its pod is an endpoint as well, and must stay the same. */
      readonly forever?: true;
    }
  | { readonly kind: "load"; readonly address: string; readonly port: number; readonly until: readonly string[] };

export type Line =
  | ({ readonly kind: "observed" } & Observed)
  /** All is asked; with `forever` of one round. */
  | { readonly kind: "done" }
  | { readonly kind: "loading" }
  | { readonly kind: "loaded"; readonly requests: number; readonly failures: Readonly<Record<string, number>> };

/** Milliseconds of one request. */
const REQUEST_MS = 2_000;
const PAUSE_MS = 300;
/** Probes at once: it is the rules that are tested, not how much a node can carry. */
const AT_ONCE = 4;

interface Asking {
  /** Milliseconds until a probe has to be as expected. */
  readonly patienceMs: number;
  readonly own: readonly string[];
}

export function ownAddresses(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((all = []) => all.map(({ address }) => address));
}

/**
 * Asks all probes, each again until it is as expected or its time is over: what a proxy programs takes effect some time
 * after an endpoint is ready.
 */
export async function askAll(
  probes: readonly Probe[],
  { patienceMs, own }: Asking,
  report: (observed: Observed) => void,
): Promise<void> {
  const end = performance.now() + patienceMs;
  const queue = probes.values();
  const worker = async () => {
    for (const probe of queue) report(await settled(probe, own, end));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

async function settled(probe: Probe, own: readonly string[], end: number): Promise<Observed> {
  for (;;) {
    const complaint = complaintOf(probe.expected, await answersTo(probe), own);
    if (complaint === undefined) return { id: probe.id };
    if (performance.now() > end) return { id: probe.id, complaint };
    await sleep(PAUSE_MS);
  }
}

/** Requests after which it is enough that each server has answered: one too many has answered by then as well. */
const ENOUGH = 10;

/** One after the other, up to the first error; where errors are expected, all at once: each takes its time. */
async function answersTo(probe: Probe): Promise<readonly Answer[]> {
  const { expected, requests } = probe;
  if (expected.kind !== "answered") return Promise.all(Array.from({ length: requests }, () => ask(probe)));
  const answers: Answer[] = [];
  const servers = new Set<string>();
  for (const enough = expected.spread === "each" ? ENOUGH : requests; answers.length < requests; ) {
    const answer = await ask(probe);
    answers.push(answer);
    if (!("by" in answer)) break;
    servers.add(answer.by);
    if (answers.length >= enough && servers.size >= expected.by.length) break;
  }
  return answers;
}

/** One request; an error is an answer as well. */
export async function ask({
  protocol,
  address,
  port,
  name,
}: Omit<Probe, "id" | "requests" | "expected">): Promise<Answer> {
  try {
    if (name !== undefined) return { resolved: await (name.family === "IPv4" ? resolve4 : resolve6)(name.text) };
    return await (protocol === "TCP" ? askTCP(address, port) : askUDP(address, port));
  } catch (error) {
    return { error: errorName(error) };
  }
}

function askTCP(address: string, port: number): Promise<Answer> {
  const signal = AbortSignal.timeout(REQUEST_MS);
  return new Promise((resolve, reject) => {
    const request = get({ host: address, port, path: "/", agent: false, signal }, (response) => {
      bodyOf(response).then((body) => resolve(answerIn(body)), reject);
    });
    request.on("error", reject);
  });
}

/** Characters of an answer: a server of the test writes a hundred, and what answers in its place may be anything. */
const MOST_BODY = 1 << 16;

async function bodyOf(response: Readable): Promise<string> {
  let body = "";
  for await (const piece of response.setEncoding("utf8")) {
    body += piece;
    if (body.length > MOST_BODY) throw new Error("an answer without end, which no server of the test gives");
  }
  return body;
}

function askUDP(address: string, port: number): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(isIPv6(address) ? "udp6" : "udp4");
    const late = setTimeout(() => end(() => reject(new Error(TIMEOUT))), REQUEST_MS);
    const end = (then: () => void) => {
      clearTimeout(late);
      socket.close();
      then();
    };
    socket.once("message", (message) => end(() => resolve(answerIn(message.toString()))));
    socket.once("error", (error) => end(() => reject(error)));
    // Connected: a refusal comes back as an error.
    socket.connect(port, address, () => socket.send("?"));
  });
}

function answerIn(body: string): Answer {
  const { by, seen } = JSON.parse(body);
  return { by: String(by), seen: String(seen) };
}

function errorName(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === "TimeoutError" || error.name === "AbortError" || error.message === TIMEOUT) return TIMEOUT;
  return "code" in error && typeof error.code === "string" ? error.code : error.message;
}

/**
 * @param own addresses of the client
 * @returns what is wrong; undefined: it is right
 */
export function complaintOf(
  expected: Expected,
  answers: readonly Answer[],
  own: readonly string[],
): string | undefined {
  switch (expected.kind) {
    case "answered":
      return notAnswered(expected, answers, own);
    case "refused":
      return answers.every((one) => "error" in one && one.error !== TIMEOUT)
        ? undefined
        : `expected a refusal at once; got ${countsText(answers)}`;
    case "unanswered":
      return answers.every((one) => "error" in one) ? undefined : `expected no answer; got ${countsText(answers)}`;
    case "resolved": {
      const wanted = [...expected.addresses].sort().join(", ");
      const right = answers.every((one) => "resolved" in one && [...one.resolved].sort().join(", ") === wanted);
      return right ? undefined : `expected ${wanted}; got ${countsText(answers)}`;
    }
  }
}

/** What stands for an error where nothing came in time. */
const TIMEOUT = "timeout";

function notAnswered(
  { by, spread, seesClient, notSeen = [] }: Extract<Expected, { readonly kind: "answered" }>,
  answers: readonly Answer[],
  own: readonly string[],
): string | undefined {
  const served = answers.flatMap((one) => ("by" in one ? [one] : []));
  const servers = new Set(served.map((one) => one.by));
  const complaint = (what: string) => `expected ${what}; got ${countsText(answers)}`;
  if (served.length < answers.length || served.length === 0) return complaint(`answers of ${by.join(" and ")}`);
  if (served.some((one) => !by.includes(one.by))) return complaint(`answers of ${by.join(" or ")} only`);
  if (spread === "each" && servers.size < by.length) return complaint(`answers of each of ${by.join(", ")}`);
  if (spread === "one" && servers.size !== 1) return complaint("all answers of one endpoint");
  const wrong = served.some(({ seen }) => (seesClient === true && !own.includes(seen)) || notSeen.includes(seen));
  return wrong ? `expected the client's own address at the endpoint; got ${countsText(answers, true)}` : undefined;
}

/** `12 web-a, 3 timeout` */
function countsText(answers: readonly Answer[], addresses = false): string {
  const counts = new Map<string, number>();
  for (const one of answers) {
    const text = answerText(one, addresses);
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return answers.length === 0 ? "nothing" : Array.from(counts, ([text, count]) => `${count} × ${text}`).join(", ");
}

function answerText(answer: Answer, addresses: boolean): string {
  if ("error" in answer) return answer.error;
  if ("resolved" in answer) return answer.resolved.join(" ");
  return addresses ? answer.seen : answer.by;
}

/** Milliseconds for which a server that is to end goes on answering: a busy proxy may sync seconds later. */
const DRAIN_MS = 8_000;

/** Answers with its name and the address that the client has here, over HTTP and UDP. */
export function serve(name: string, port: number): void {
  const answer = (address: string) => JSON.stringify({ by: name, seen: address.replace(/^::ffff:/, "") });
  const http = createServer(({ socket }, response) => {
    response.writeHead(200, { connection: "close", "content-type": "application/json" });
    response.end(answer(socket.remoteAddress ?? ""));
  });
  http.listen(port);
  // Both families; where a node has no IPv6, only the other one.
  answerDatagrams("udp6", port, answer).once("error", () => answerDatagrams("udp4", port, answer));
  process.once("SIGTERM", async () => {
    await sleep(DRAIN_MS);
    process.exit(0);
  });
}

function answerDatagrams(type: "udp4" | "udp6", port: number, answer: (address: string) => string) {
  const socket = createSocket(type);
  socket.on("message", (_, { address, port: from }) => socket.send(answer(address), from, address));
  return socket.bind(port);
}

/** Milliseconds between two requests, for which only the last servers answer at the end, and of all. */
const LOAD_PAUSE_MS = 25;
const QUIET_MS = 3_000;
const MOST_MS = 90_000;

/** Asks again and again, until only these servers have answered for a while. */
export async function load(
  address: string,
  port: number,
  until: readonly string[],
  print: (line: Line) => void,
): Promise<void> {
  await firstAnswer(address, port);
  const failures: Record<string, number> = {};
  let requests = 0;
  const began = performance.now();
  let last = began;
  print({ kind: "loading" });
  while (performance.now() - last < QUIET_MS && performance.now() - began < MOST_MS) {
    const answer = await ask({ protocol: "TCP", address, port });
    requests += 1;
    if ("error" in answer) failures[answer.error] = (failures[answer.error] ?? 0) + 1;
    if (!("by" in answer && until.includes(answer.by))) last = performance.now();
    await sleep(LOAD_PAUSE_MS);
  }
  print({ kind: "loaded", requests, failures });
}

/** What is programmed for the first servers takes effect some time after they are ready. */
async function firstAnswer(address: string, port: number): Promise<void> {
  const end = performance.now() + MOST_MS;
  while ("error" in (await ask({ protocol: "TCP", address, port })) && performance.now() < end)
    await sleep(LOAD_PAUSE_MS);
}

import { createSocket } from "node:dgram";
import { resolve4, resolve6 } from "node:dns/promises";
import { get } from "node:http";
import { isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { complaintOf, TIMEOUT } from "./judge.ts";
import type { Answer, Observed, Probe } from "./probe.ts";

/** Milliseconds of one request. */
const REQUEST_MS = 2_000;
const PAUSE_MS = 300;
/** Probes at once: it is the rules that are tested, not how much a node can carry. */
const AT_ONCE = 4;

interface Asking {
  /** Milliseconds until a probe has to be as expected. */
  readonly patienceMs: number;
  /** Addresses of the client. */
  readonly own: readonly string[];
}

/** The addresses of this network namespace. */
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
    const answers = await answersTo(probe);
    if (complaintOf(probe.expected, answers, own) === undefined || performance.now() > end) {
      return { id: probe.id, own, answers };
    }
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
    if (body.length > MOST_BODY) throw new Error("an answer without end, which is none of the test's servers");
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

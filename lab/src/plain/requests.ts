/** Requests to what the first node serves: single ones, steady traffic, connections that are kept, and many bytes. */

import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { socketText } from "@fairlead/base";
import { PATIENCE_MS } from "@fairlead/base/testing";
import { clientA, type Host, NODE_A, outside } from "@fairlead/testkit";
import type { Peer } from "../peer/process.ts";
import type { Ending } from "../peer/protocol.ts";
import { type Script, startScript } from "../support/script.ts";
import { waitUntil } from "../support/wait-until.ts";
import { type Lab, namespaceOf } from "./lab.ts";
import { web } from "./scene.ts";

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

/** A client and its target. */
export interface TrafficFlow {
  readonly from: Host;
  readonly to: string;
  readonly port: number;
  /** Default TCP. */
  readonly protocol?: "TCP" | "UDP";
}

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
  // A test that gives up does not stop it: it ends with the peers, and then no caller waits for it.
  for (const one of lanes) one.catch(() => {});
  return {
    stop: async (least = 0) => {
      state.least = least;
      const failures = (await Promise.all(lanes)).flat();
      return { requests: state.requests, failures };
    },
  };
}

/** The answer to one request: the server's name, or `refused`, `lost` or the error's code. */
export function whoAnswers(lab: Lab, from: Host, to: string, port = 80): Promise<string> {
  return whoAnswersAt(lab, { from, to, port });
}

/**
 * Long enough for more than one SYN: the ICMPv6 answer to the first comes while connect() holds the socket, and is not
 * heeded. A busy machine may take seconds to answer.
 */
const TIMEOUT_MS = 15_000;

/** The same for a way that traffic takes. */
export async function whoAnswersAt(lab: Lab, { from, protocol = "TCP", to, port }: TrafficFlow): Promise<string> {
  const [result] = await lab.peer(from).send({ protocol, to, port, count: 1, parallel: 1, timeoutMs: TIMEOUT_MS });
  if (result === undefined) return "nothing";
  if (result.kind === "answer") return result.server;
  return result.kind === "error" ? result.code : result.kind;
}

/** A TCP connection that its client keeps. */
export interface HeldConnection extends AsyncDisposable {
  /** Sends a request on it. @returns the server's name, or the code of the error that ended the connection */
  ask(): Promise<string>;
  /** Waits until the kernel has sent something once more, since nothing acknowledged it. */
  retransmitted(): Promise<void>;
}

const HELD_SCRIPT = fileURLToPath(new URL("./held-main.ts", import.meta.url));

/** Makes a connection, which is there when the first request on it has been answered. */
export async function hold(lab: Lab, from: Host, to: string, port: number): Promise<HeldConnection> {
  const namespace = namespaceOf(from);
  const script = await startScript(lab.namespace(namespace), HELD_SCRIPT, [to, String(port)]);
  return {
    ask: () => script.ask("ask"),
    retransmitted: async () => {
      await waitUntil(`a retransmission to ${to}`, PATIENCE_MS, async () => {
        const { stdout } = await lab.runner(namespace).run(["ss", "-Htni", "dst", socketText(to, port)]);
        return / retrans:[1-9]/.test(stdout) ? true : undefined;
      });
    },
    [Symbol.asyncDispose]: script.stop,
  };
}

/** From now on a pod gets no packet, as if its node had lost power, until what this returns is disposed of. */
export async function vanish(lab: Lab, pod: Host): Promise<AsyncDisposable> {
  const each = (action: "-I" | "-D") =>
    Promise.all(
      ["iptables", "ip6tables"].map((tool) => lab.runner(namespaceOf(pod)).run([tool, action, "INPUT", "-j", "DROP"])),
    );
  await each("-I");
  const stack = new AsyncDisposableStack();
  stack.defer(async () => void (await each("-D")));
  return stack;
}

const BYTES_SCRIPT = fileURLToPath(new URL("./bytes-main.ts", import.meta.url));

/** A server on a host that gives as many bytes as it is asked for. */
export function serveBytes(lab: Lab, host: Host, port: number): Promise<Script> {
  return startScript(lab.namespace(namespaceOf(host)), BYTES_SCRIPT, ["serve", String(port)]);
}

/** What came over one connection. */
interface Fetched {
  readonly received: number;
  /** Every byte as it was sent, in its order. */
  readonly intact: boolean;
  readonly ms: number;
}

/** Fetches bytes over one connection. */
export async function fetchBytes(lab: Lab, from: Host, to: string, port: number, bytes: number): Promise<Fetched> {
  const script = await startScript(lab.namespace(namespaceOf(from)), BYTES_SCRIPT, ["fetch", to, String(port)]);
  const fetched = JSON.parse(await script.ask(String(bytes)));
  await script.stop();
  return fetched;
}

/** Refusals and answers of others come at once; an answer of a busy machine may take seconds. */
const BATCH = { protocol: "TCP", count: 8, parallel: 4, timeoutMs: 15_000 } as const;
/** All ways together leave time for what is tested. */
const PAUSE_MS = 50;

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

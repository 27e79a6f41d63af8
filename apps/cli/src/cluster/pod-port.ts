import { request } from "node:http";
import { Duplex, PassThrough } from "node:stream";
import type { WebSocket } from "ws";
import type { HttpAnswer } from "../frame/context.ts";
import { CommandFailure } from "../frame/errors.ts";
import type { OpenKubeconfig } from "./kubeconfig.ts";
import type { Container } from "./pod-runner.ts";
import { connected, webSocketHandler } from "./web-sockets.ts";

/**
 * A connection to a port of a pod's loopback (`pods/portforward`). No port is opened on this host.
 *
 * @throws CommandFailure when the API server does not allow it or does not answer
 */
export async function connectToPod(
  { namespace, name }: Pick<Container, "namespace" | "name">,
  port: number,
  opened: OpenKubeconfig,
): Promise<Duplex> {
  const [{ PortForward }, handler] = await Promise.all([import("./library.ts"), webSocketHandler(opened)]);
  const [toPod, fromPod, problem] = [new PassThrough(), new PassThrough(), new PassThrough({ encoding: "utf8" })];
  const forward = new PortForward(opened.config, true, handler);
  const opening = forward.portForward(namespace, name, [port], fromPod, problem, toPod);
  // Without retries it is a socket, and not a function that gives one.
  const socket = await connected(opening as Promise<WebSocket>, opened);
  // Its first message is the number of the port, of which the library leaves nothing.
  problem.on("data", (said: string) => {
    if (said !== "") fromPod.destroy(new Error(said.trim()));
  });
  socket.on("error", (error) => fromPod.destroy(error));
  socket.on("close", () => fromPod.end());
  const both = Duplex.from({ readable: fromPod, writable: toPod });
  // Readers and writers get the error themselves; a connection that is destroyed early ends with one as well.
  both.on("error", () => {}).on("close", () => socket.terminate());
  return both;
}

/** One GET over a connection that is open already. */
export function httpOver(
  connection: Duplex,
  { path, timeoutMs }: { readonly path: string; readonly timeoutMs: number },
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(timeoutMs);
    const options = { createConnection: () => connection, host: "127.0.0.1", path, signal } as const;
    const sent = request({ ...options, headers: { host: "127.0.0.1", connection: "close" } }, (response) => {
      const status = response.statusCode ?? 0;
      answerText(response, path).then((text) => resolve({ status, text }), reject);
    });
    sent.on("error", (error) => {
      const late = new CommandFailure(`no answer within ${timeoutMs / 1000} s`, { cause: error });
      reject(signal.aborted ? late : error);
    });
    sent.end();
  });
}

/** Its message follows the name of what was asked. */
export class LargeAnswer extends Error {}

/** Bytes of an answer that are read at most: the process that answers may be any. */
const MOST_BYTES = 4 << 20;

/** The page that grows with the services: some hundred bytes for each. */
const MOST_BYTES_OF: Readonly<Record<string, number>> = { "/ownership": 64 << 20 };

/**
 * The text of an answer of a proxy, or of what listens in its place.
 *
 * @throws LargeAnswer for one that is larger than a proxy's would be
 */
export async function answerText(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  path: string,
): Promise<string> {
  const most = MOST_BYTES_OF[path] ?? MOST_BYTES;
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  // Leaving the loop ends the connection.
  for await (const piece of body) {
    bytes += piece.length;
    if (bytes > most) throw new LargeAnswer(`answers with more than ${most >> 20} MiB, which no proxy does`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}

import { request } from "node:http";
import { Duplex, PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
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
      text(response).then((body) => resolve({ status, text: body }), reject);
    });
    sent.on("error", (error) => {
      const late = new CommandFailure(`no answer within ${timeoutMs / 1000} s`, { cause: error });
      reject(signal.aborted ? late : error);
    });
    sent.end();
  });
}

/** Pods through the API server: programs in a container, connections to a port. */

import { type IncomingMessage, request } from "node:http";
import { Duplex, PassThrough, Readable } from "node:stream";
import { fieldsOf, itemsOf, stringOf } from "@fairlead/base";
import { type Argv, CommandError, type Input, type Runner, type RunOptions } from "@fairlead/kernel";
import type { V1Status } from "@kubernetes/client-node";
import type { WebSocketHandler } from "@kubernetes/client-node/dist/web-socket-handler.js";
import type { ClientOptions, ErrorEvent, MessageEvent, WebSocket } from "ws";
import type { HttpAnswer } from "../frame/context.ts";
import { CommandFailure } from "../frame/errors.ts";
import { refusal, unreachable } from "./api-error.ts";
import type { OpenKubeconfig } from "./kubeconfig.ts";

export interface Container {
  readonly namespace: string;
  /** The pod's. */
  readonly name: string;
  readonly container: string;
  /** It is on a Windows node, which has no programs that read a kernel. */
  readonly windows?: true;
}

/** As processes of this host have it. */
const TIMEOUT_MS = 60_000;
const MAX_STDOUT = 16 * 1024 * 1024;
const MAX_STDERR = 64 * 1024;

/** Bytes of standard input in a message. */
const PIECE = 16 * 1024;

/** The subprotocol in which the end of standard input can be said: Kubernetes 1.30 and later. */
const WITH_END_OF_INPUT = "v5.channel.k8s.io";

/** Starts programs in a container (`pods/exec`). */
export function podRunner(container: Container, open: () => Promise<OpenKubeconfig>): Runner {
  const start = async (argv: Argv, options: RunOptions) => {
    if (container.windows) throw new CommandFailure(onWindows(container));
    return startProgram(argv, container, await open(), options);
  };
  return {
    async run(argv, options = {}) {
      const { maxStdout = MAX_STDOUT } = options;
      const pieces: string[] = [];
      let length = 0;
      const program = await start(argv, options);
      for await (const piece of program.output()) {
        length += piece.length;
        if (length > maxStdout) program.stop(new CommandError({ argv, reason: "output", stdout: pieces.join("") }));
        else pieces.push(piece);
      }
      return program.end(pieces.join(""));
    },
    async *stream(argv, options = {}) {
      const program = await start(argv, options);
      yield* program.output();
      program.end("");
    },
  };
}

class PodProgram {
  readonly #argv: Argv;
  readonly #stdout = new PassThrough({ encoding: "utf8" });
  #stderr = "";
  #status: V1Status | undefined;
  #stopped: unknown;
  #socket: WebSocket | undefined;

  constructor(argv: Argv) {
    this.#argv = argv;
  }

  /** What the library writes into, and calls with the status that ends it. */
  get streams() {
    const stderr = new PassThrough({ encoding: "utf8" });
    stderr.on("data", (piece: string) => {
      this.#stderr = (this.#stderr + piece).slice(0, MAX_STDERR);
    });
    const onStatus = (status: V1Status) => {
      this.#status = status;
    };
    return { stdout: this.#stdout, stderr, onStatus };
  }

  connected(socket: WebSocket): void {
    this.#socket = socket;
    // The library writes whatever comes: what is not read yet is not taken from the network.
    socket.on("message", () => this.#stdout.writableNeedDrain && socket.pause());
    this.#stdout.on("drain", () => socket.resume());
    socket.on("error", () => {});
    socket.on("close", () => this.#stdout.end());
    if (socket.readyState > socket.OPEN) this.#stdout.end();
  }

  /** Leaving the loop ends the connection. */
  async *output(): AsyncGenerator<string, void, void> {
    try {
      yield* this.#stdout as AsyncIterable<string>;
    } catch (error) {
      throw this.#stopped ?? error;
    } finally {
      this.#socket?.terminate();
    }
  }

  stop(why: unknown): void {
    this.#stopped ??= why;
    this.#socket?.terminate();
    this.#stdout.destroy();
  }

  end(stdout: string) {
    if (this.#stopped !== undefined) throw this.#stopped;
    const stderr = this.#stderr;
    if (this.#status?.status === "Success") return { stdout, stderr };
    throw new CommandError({ argv: this.#argv, stdout, ...failureOf(this.#status, stderr) });
  }
}

function onWindows({ namespace, name }: Container): string {
  return `pod ${namespace}/${name} is on a Windows node, and what is programmed there cannot be read from here`;
}

async function startProgram(
  argv: Argv,
  { namespace, name, container }: Container,
  opened: OpenKubeconfig,
  { input, timeoutMs = TIMEOUT_MS, signal }: RunOptions,
): Promise<PodProgram> {
  const [{ Exec }, handler] = await Promise.all([import("./library.ts"), webSocketHandler(opened)]);
  const program = new PodProgram(argv);
  const { stdout, stderr, onStatus } = program.streams;
  const stdin = input === undefined ? null : Readable.from(piecesOf(input), { objectMode: false });
  const exec = new Exec(opened.config, handler);
  const opening = exec.exec(namespace, name, container, [...argv], stdout, stderr, stdin, false, onStatus);
  const socket = await connected(opening, opened);
  program.connected(socket);
  if (stdin !== null && socket.protocol !== WITH_END_OF_INPUT) {
    socket.terminate();
    throw new CommandFailure(`${argv[0]} in a pod needs standard input, which takes an API server of Kubernetes 1.30`);
  }
  const time = timeoutMs === 0 ? undefined : AbortSignal.timeout(timeoutMs);
  time?.addEventListener("abort", () => program.stop(new CommandError({ argv, reason: "timeout", timeoutMs })));
  const abort = () => program.stop(new CommandError({ argv, reason: "aborted" }));
  signal?.addEventListener("abort", abort, { once: true });
  socket.on("close", () => signal?.removeEventListener("abort", abort));
  if (signal?.aborted === true) abort();
  return program;
}

async function* piecesOf(input: Input): AsyncGenerator<Buffer, void, void> {
  for await (const text of typeof input === "string" ? [input] : input) {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += PIECE) yield bytes.subarray(at, at + PIECE);
  }
}

/** @param status as k8s.io/apimachinery's remotecommand says it; undefined: the connection broke off before */
function failureOf(status: V1Status | undefined, stderr: string) {
  if (status === undefined) return { reason: "start", stderr, cause: new Error("the connection broke off") } as const;
  const causes = itemsOf(fieldsOf(status.details)["causes"]).map(fieldsOf);
  const code = stringOf(causes.find(({ reason }) => reason === "ExitCode")?.["message"]);
  const said = stderr === "" ? (status.message ?? "") : stderr;
  const isMissing = /executable file not found|no such file or directory/i.test(said);
  if (isMissing && (code === undefined || code === "126" || code === "127")) {
    return { reason: "not-found", stderr: said } as const;
  }
  if (code === undefined) return { reason: "start", stderr: said, cause: new Error(status.message ?? "") } as const;
  return { reason: "exit", exitCode: Number(code), stderr } as const;
}

/** A connection to a port of a pod's loopback (`pods/portforward`). No port is opened on this host. */
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

/** The text of an answer of a proxy, or of what listens in its place. */
export function answerText(body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, path: string): Promise<string> {
  return boundedText(body, MOST_BYTES_OF[path] ?? MOST_BYTES, "no proxy");
}

/**
 * The text of an answer, up to the memory that a pod may take of this process.
 *
 * @param who gives none that large, in words: `no proxy`
 */
export async function boundedText(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  most: number,
  who: string,
): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  // Leaving the loop ends the connection.
  for await (const piece of body) {
    bytes += piece.length;
    if (bytes > most) throw new LargeAnswer(`answers with more than ${most >> 20} MiB, which ${who} does`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}

/** Milliseconds until a connection to a pod must be open. */
const HANDSHAKE_MS = 15_000;

/** Opens connections to pods by the library, with errors that say what the API server says. */
async function webSocketHandler(opened: OpenKubeconfig): Promise<WebSocketHandler> {
  const library = await import("./library.ts");
  const open = (uri: string, protocols: string[], options: ClientOptions) => {
    const handshakeTimeout = Math.min(opened.requestMs ?? HANDSHAKE_MS, HANDSHAKE_MS);
    const settings = { ...options, handshakeTimeout, perMessageDeflate: false };
    const socket = new library.WebSocket(uri, protocols, settings);
    catchHandlerErrors(socket);
    socket.on("unexpected-response", (_request, response) => void refuse(socket, response, opened));
    return socket;
  };
  // By default what a server closes would be the streams of this process.
  const unused = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
  return new library.WebSocketHandler(opened.config, open, unused);
}

/** The library throws at a message that it does not understand, where nothing else could catch it. */
function catchHandlerErrors(socket: WebSocket): void {
  Object.defineProperty(socket, "onmessage", {
    set: (handle: (event: MessageEvent) => void) =>
      socket.addEventListener("message", (event) => {
        try {
          handle(event);
        } catch (error) {
          socket.emit("error", error);
          socket.terminate();
        }
      }),
  });
}

/** The library would say only "Unexpected server response: 403". */
async function refuse(socket: WebSocket, response: IncomingMessage, opened: OpenKubeconfig): Promise<void> {
  const body = await boundedText(response, MOST_BYTES, "no refusal").catch(() => "");
  socket.emit("error", refusal(response.statusCode ?? 0, body, opened));
  socket.terminate();
}

async function connected(opening: Promise<WebSocket>, opened: OpenKubeconfig): Promise<WebSocket> {
  try {
    return await opening;
  } catch (event) {
    const error = isErrorEvent(event) ? event.error : event;
    throw error instanceof CommandFailure ? error : unreachable(error, opened);
  }
}

function isErrorEvent(event: unknown): event is ErrorEvent {
  return typeof event === "object" && event !== null && "error" in event;
}

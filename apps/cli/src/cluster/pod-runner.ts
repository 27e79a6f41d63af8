import { PassThrough, Readable } from "node:stream";
import { fieldsOf, itemsOf, stringOf } from "@fairlead/base";
import { type Argv, CommandError, type Input, type Runner, type RunOptions } from "@fairlead/kernel";
import type { V1Status } from "@kubernetes/client-node";
import type { WebSocket } from "ws";
import { CommandFailure } from "../frame/errors.ts";
import type { OpenKubeconfig } from "./kubeconfig.ts";
import { connected, webSocketHandler } from "./web-sockets.ts";

export interface Container {
  readonly namespace: string;
  /** The pod's. */
  readonly name: string;
  readonly container: string;
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
  return {
    async run(argv, options = {}) {
      const { maxStdout = MAX_STDOUT } = options;
      const pieces: string[] = [];
      let length = 0;
      const program = await start(argv, container, await open(), options);
      for await (const piece of program.output()) {
        length += piece.length;
        if (length > maxStdout) program.stop(new CommandError({ argv, reason: "output", stdout: pieces.join("") }));
        else pieces.push(piece);
      }
      return program.end(pieces.join(""));
    },
    async *stream(argv, options = {}) {
      const program = await start(argv, container, await open(), options);
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

  /** @throws CommandError unless the program ended with code 0 */
  end(stdout: string) {
    if (this.#stopped !== undefined) throw this.#stopped;
    const stderr = this.#stderr;
    if (this.#status?.status === "Success") return { stdout, stderr };
    throw new CommandError({ argv: this.#argv, stdout, ...failureOf(this.#status, stderr) });
  }
}

async function start(
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

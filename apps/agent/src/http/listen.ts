/** Listens: on addresses that may be in use, with a limit to connections and to their pace. */

import { createServer, type RequestListener, type Server } from "node:http";
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { type Clock, errorChainText, sleep, socketText } from "@fairlead/base";
import type { SocketAddress } from "@fairlead/config";
import type { Log } from "../log.ts";
import { type App, requestListener } from "./app.ts";

export interface HostPort {
  /** An address without brackets; `0.0.0.0` and `::` listen on all. */
  readonly host: string;
  readonly port: number;
}

export interface Listener {
  /** Where it listens; the port is the real one where 0 was asked for. */
  readonly address: HostPort;
  close(): Promise<void>;
}

/** Bytes that are kept for a connection alongside what the kernel keeps, but for one chunk of libuv's (64 kB). */
const HIGH_WATER_MARK = 4_096;

/** Milliseconds in which a request has to be complete. */
const REQUEST_MS = 10_000;

/** Requests on one connection, after which the client has to make a new one. */
const MOST_REQUESTS = 100;

/**
 * Connections that may wait to be accepted; the kernel's own bound is 4,096 as well (net.core.somaxconn). What comes
 * beyond it is not refused but tries again after 1, 3 and 7 s: a probe among them would be late.
 */
const BACKLOG = 4_096;

/**
 * Serves an app on one address.
 *
 * @param limit servers that share it are bounded together
 * @throws Error with the code of listen(2), for example EADDRINUSE or EADDRNOTAVAIL
 */
export async function listen(
  app: App,
  at: HostPort,
  ipv6Only = false,
  limit = new ConnectionLimit(),
): Promise<Listener> {
  const server = createServer({ highWaterMark: HIGH_WATER_MARK, requestTimeout: REQUEST_MS }, oneByOne(app));
  server.maxRequestsPerSocket = MOST_REQUESTS;
  serveInPieces(server, limit);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // Stays for good: a connection that cannot be accepted is lost, and no reason to end the process.
  server.on("error", reject);
  server.listen({ host: at.host, port: at.port, ipv6Only, backlog: BACKLOG }, resolve);
  await promise;
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : at.port;
  return { address: { host: at.host, port }, close: () => closed(server) };
}

/** The agent's own servers, by what log lines call them. */
export type ServerName = "health" | "metrics";

interface BindOptions {
  readonly name: ServerName;
  readonly at: SocketAddress;
  /** bindAddressHardFail: it is not tried again. */
  readonly hardFail: boolean;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly limit: ConnectionLimit;
  /** Called for each failed attempt, in words that name the server and its address. */
  readonly onFailure: (server: ServerName, reason: string) => void;
}

/** Milliseconds between attempts to take an address that is in use, as upstream. */
const RETRY_MS = 5_000;

/** Serves an app on the agent's own address, and tries again while that is in use. */
export async function bind(app: App, options: BindOptions): Promise<Listener | undefined> {
  const { name, at, hardFail, clock, log, signal, limit } = options;
  const address = socketText(at.address, at.port);
  const onError = (error: unknown): boolean => {
    const what = errorChainText(error);
    options.onFailure(name, `the ${name} server cannot listen on ${address}: ${what}`);
    if (!hardFail)
      log.error("Server cannot listen; its clients get no answer, retrying", { server: name, address, error: what });
    return hardFail;
  };
  const listener = await listenWhenFree(
    app,
    { host: at.address, port: at.port },
    { clock, every: RETRY_MS, signal, onError, limit },
  );
  if (listener !== undefined) log.verbose(2, "Listening", { server: name, address });
  return listener;
}

/**
 * Bounds the open connections of all HTTP servers of a process. Past the limit the oldest one is closed, so that
 * connections that are only held keep no probe out: Node's maxConnections would close the newest.
 */
export class ConnectionLimit {
  readonly #most: number;
  /** The oldest first. */
  readonly #open = new Set<Duplex>();

  /** @param most connections to all servers together; each takes about 20 kB and a descriptor */
  constructor(most = 1_024) {
    this.#most = most;
  }

  add(connection: Duplex): void {
    this.#open.add(connection);
    connection.once("close", () => this.#open.delete(connection));
    const [oldest] = this.#open;
    if (oldest === undefined || this.#open.size <= this.#most) return;
    this.#open.delete(oldest);
    oldest.destroy();
  }
}

/** No client of these ports sends a request before it has the answer to the last one: one that does is cut. */
function oneByOne(app: App): RequestListener {
  const serve = requestListener(app);
  return (request, response) => {
    const pipelined = response.socket === null;
    if (pipelined) request.socket.destroy();
    else serve(request, response);
  };
}

function serveInPieces(server: Server, limit: ConnectionLimit): void {
  const serving = server.listeners("connection");
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    const connection = new PacedConnection(socket);
    limit.add(connection);
    for (const serve of serving) serve.call(server, connection);
  });
}

async function closed(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  server.closeAllConnections();
  await promise;
}

interface RetryingListenOptions {
  readonly clock: Clock;
  /** Milliseconds between attempts; upstream: 5 s. */
  readonly every: number;
  readonly signal: AbortSignal;
  /** Called for each failed attempt; true gives up. */
  readonly onError: (error: unknown) => boolean;
  readonly limit: ConnectionLimit;
}

/** Serves as soon as the address is free. Undefined: it gave up, or the signal aborted. */
async function listenWhenFree(app: App, at: HostPort, options: RetryingListenOptions): Promise<Listener | undefined> {
  while (!options.signal.aborted) {
    try {
      return await listen(app, at, false, options.limit);
    } catch (error) {
      if (options.onError(error)) return undefined;
      await sleep(options.clock, options.every, options.signal);
    }
  }
  return undefined;
}

/** Bytes that are parsed in one turn of the event loop: an ordinary request, or up to 20 of the shortest ones. */
const PIECE_BYTES = 512;

/**
 * A client's connection that gives node:http a small piece in each turn of the event loop. By itself node:http parses
 * all of what was received at once, 2,000 pipelined requests in one chunk, and nothing stops it half way.
 */
class PacedConnection extends Duplex {
  readonly #socket: Socket;

  constructor(socket: Socket) {
    super({ readableHighWaterMark: PIECE_BYTES, writableHighWaterMark: socket.writableHighWaterMark });
    this.#socket = socket;
    socket.on("end", () => this.push(null));
    socket.on("timeout", () => this.emit("timeout"));
    socket.on("error", (error) => this.destroy(error));
    socket.on("close", () => this.destroy());
  }

  /** As net.Socket's: some answers are for those on the node only. */
  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress;
  }

  /** As net.Socket's: node:http ends connections by it that are kept and not used. */
  setTimeout(milliseconds: number): this {
    this.#socket.setTimeout(milliseconds);
    return this;
  }

  /** As net.Socket's: the end after what is written. */
  destroySoon(): void {
    this.end(() => this.destroy());
  }

  override _read(): void {
    const soon = () => setImmediate(() => this.#give());
    if (this.#socket.readableLength > 0) soon();
    else this.#socket.once("readable", soon);
  }

  #give(): void {
    if (this.destroyed) return;
    const { readableLength } = this.#socket;
    const piece: unknown = readableLength === 0 ? null : this.#socket.read(Math.min(readableLength, PIECE_BYTES));
    if (piece !== null) this.push(piece);
    else if (!this.#socket.readableEnded) {
      // What could be read is the stream's end, which comes when it is read.
      this.#socket.read(0);
      this._read();
    }
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, done);
  }

  override _final(done: () => void): void {
    this.#socket.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}

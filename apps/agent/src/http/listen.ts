import { createServer, type RequestListener, type Server } from "node:http";
import type { Socket } from "node:net";
import { type Clock, sleep } from "@fairlead/base";
import { type App, requestListener } from "./app.ts";
import { ConnectionLimit } from "./connection-limit.ts";
import { PacedConnection } from "./paced-connection.ts";

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

/**
 * Connections that may wait to be accepted; the kernel's own bound is 4,096 as well (net.core.somaxconn). What comes
 * beyond it is not refused but tries again after 1, 3 and 7 s: a probe among them would be late.
 */
const BACKLOG = 4_096;

/** Requests on one connection, after which the client has to make a new one. */
const MOST_REQUESTS = 100;

/** Milliseconds in which a request has to be complete. */
const REQUEST_MS = 10_000;

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

export interface RetryingListenOptions {
  readonly clock: Clock;
  /** Milliseconds between attempts; upstream: 5 s. */
  readonly every: number;
  readonly signal: AbortSignal;
  /** Called for each failed attempt; true gives up. */
  readonly onError: (error: unknown) => boolean;
  readonly limit: ConnectionLimit;
}

/** Serves as soon as the address is free. Undefined: it gave up, or the signal aborted. */
export async function listenWhenFree(
  app: App,
  at: HostPort,
  options: RetryingListenOptions,
): Promise<Listener | undefined> {
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

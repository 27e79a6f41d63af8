import { createServer, type Server } from "node:http";
import { type Clock, sleep } from "../clock.ts";
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

/**
 * Serves an app on one address.
 *
 * @throws Error with the code of listen(2), for example EADDRINUSE or EADDRNOTAVAIL
 */
export async function listen(app: App, at: HostPort, ipv6Only = false): Promise<Listener> {
  const server = createServer(requestListener(app));
  server.requestTimeout = 10_000;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // Stays for good: a connection that cannot be accepted is lost, and no reason to end the process.
  server.on("error", reject);
  server.listen({ host: at.host, port: at.port, ipv6Only }, resolve);
  await promise;
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : at.port;
  return { address: { host: at.host, port }, close: () => closed(server) };
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
}

/** Serves as soon as the address is free. Undefined: it gave up, or the signal aborted. */
export async function listenWhenFree(
  app: App,
  at: HostPort,
  options: RetryingListenOptions,
): Promise<Listener | undefined> {
  while (!options.signal.aborted) {
    try {
      return await listen(app, at);
    } catch (error) {
      if (options.onError(error)) return undefined;
      await sleep(options.clock, options.every, options.signal);
    }
  }
  return undefined;
}

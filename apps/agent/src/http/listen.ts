import { createServer, type Server } from "node:http";
import { type Clock, sleep } from "@fairlead/base";
import { Admission } from "./admission.ts";
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

/** Bytes that are kept for a connection beside what the kernel keeps, but for one chunk of libuv's (64 kB). */
const HIGH_WATER_MARK = 4_096;

/**
 * Serves an app on one address.
 *
 * @param admission lets the clients in; servers that share it are bounded together
 * @throws Error with the code of listen(2), for example EADDRINUSE or EADDRNOTAVAIL
 */
export async function listen(app: App, at: HostPort, ipv6Only = false, admission = new Admission()): Promise<Listener> {
  const server = createServer({ highWaterMark: HIGH_WATER_MARK, requestTimeout: 10_000 }, requestListener(app));
  admission.guard(server);
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
  readonly admission: Admission;
}

/** Serves as soon as the address is free. Undefined: it gave up, or the signal aborted. */
export async function listenWhenFree(
  app: App,
  at: HostPort,
  options: RetryingListenOptions,
): Promise<Listener | undefined> {
  while (!options.signal.aborted) {
    try {
      return await listen(app, at, false, options.admission);
    } catch (error) {
      if (options.onError(error)) return undefined;
      await sleep(options.clock, options.every, options.signal);
    }
  }
  return undefined;
}

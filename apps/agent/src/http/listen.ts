import { createServer, type Server } from "node:http";
import { type Clock, sleep } from "@fairlead/base";
import { acceptMore } from "./acceptors.ts";
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
 * Connections that may wait to be accepted; the kernel's own bound is 4,096 as well (net.core.somaxconn). What comes
 * beyond it is not refused but tries again after 1, 3 and 7 s: a probe among them would be late.
 */
const BACKLOG = 4_096;

/**
 * Serves an app on one address.
 *
 * @param admission lets the clients in; servers that share it are bounded together
 * @throws Error with the code of listen(2), for example EADDRINUSE or EADDRNOTAVAIL
 */
export async function listen(app: App, at: HostPort, ipv6Only = false, admission = new Admission()): Promise<Listener> {
  return (await open(app, at, ipv6Only, admission)).listener;
}

/** The same for clients that come by the thousand: it takes more descriptors, and lets in more of them in a turn. */
export async function listenForMany(app: App, at: HostPort, admission = new Admission()): Promise<Listener> {
  const { server, listener } = await open(app, at, false, admission);
  const closeMore = await acceptMore(server, { backlog: BACKLOG, highWaterMark: HIGH_WATER_MARK });
  const close = () => {
    closeMore();
    return listener.close();
  };
  return { ...listener, close };
}

async function open(
  app: App,
  at: HostPort,
  ipv6Only: boolean,
  admission: Admission,
): Promise<{ readonly server: Server; readonly listener: Listener }> {
  const server = createServer({ highWaterMark: HIGH_WATER_MARK, requestTimeout: 10_000 }, requestListener(app));
  admission.guard(server);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // Stays for good: a connection that cannot be accepted is lost, and no reason to end the process.
  server.on("error", reject);
  server.listen({ host: at.host, port: at.port, ipv6Only, backlog: BACKLOG }, resolve);
  await promise;
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : at.port;
  return { server, listener: { address: { host: at.host, port }, close: () => closed(server) } };
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
      return await listenForMany(app, at, options.admission);
    } catch (error) {
      if (options.onError(error)) return undefined;
      await sleep(options.clock, options.every, options.signal);
    }
  }
  return undefined;
}

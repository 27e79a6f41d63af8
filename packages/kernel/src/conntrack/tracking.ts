import type { Connection, ConnectionEvent } from "./connection.ts";

/** The connections that this network namespace tracks, in zone 0: TCP, UDP and SCTP of both families. Only reads. */
export interface Tracking {
  /**
   * All of them as they are read.
   *
   * @throws NetlinkError, or CommandError, when they may not be read
   */
  list(): AsyncGenerator<Connection, void, void>;
  /**
   * What becomes of connections from when it resolves until the signal aborts. The kernel only reports while something
   * listens: what is given has to be read to its end, or until the signal aborts.
   *
   * @throws NetlinkError, or CommandError with the first event, when it may not be heard
   */
  follow(signal: AbortSignal): Promise<AsyncIterable<ConnectionEvent>>;
}

import type { Connection } from "../conntrack/connection.ts";
import type { Tracking } from "../conntrack/tracking.ts";

/** Tracked connections in memory, which only their owner changes. */
export class FakeTracking implements Pick<Tracking, "list"> {
  /** What a listing gives. */
  connections: Iterable<Connection> = [];
  /** What a listing fails with after its last connection; undefined: it ends well. */
  failure: Error | undefined;
  /** Listings that have begun. */
  listings = 0;

  async *list(): AsyncGenerator<Connection, void, void> {
    this.listings += 1;
    yield* this.connections;
    if (this.failure !== undefined) throw this.failure;
  }
}

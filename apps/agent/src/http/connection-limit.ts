import type { Duplex } from "node:stream";

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

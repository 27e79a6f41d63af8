import type { Server } from "node:http";
import type { Socket } from "node:net";
import { PacedConnection } from "./paced-connection.ts";
import { Turns } from "./turns.ts";

/**
 * Lets clients in to all HTTP servers of a process, so that all of them together cannot keep it from its work: they
 * take turns, piece by piece, and there is a bound to how many there are. Beyond it the one goes that was silent
 * longest, so that connections which are only held keep nobody out.
 */
export class Admission {
  readonly #turns: Turns;
  readonly #most: number;
  /** The most recently active last. */
  readonly #connections = new Set<PacedConnection>();

  /** @param most connections to all servers together; each takes about 20 kB and a descriptor */
  constructor(turns = new Turns(), most = 1_024) {
    this.#turns = turns;
    this.#most = most;
  }

  /** Has the server serve what is let in here in place of what it accepts. */
  guard(server: Server): void {
    const serving = server.listeners("connection");
    server.removeAllListeners("connection");
    server.on("connection", (socket: Socket) => {
      const connection = this.#admit(socket);
      for (const serve of serving) serve.call(server, connection);
    });
  }

  #admit(socket: Socket): PacedConnection {
    const connection: PacedConnection = new PacedConnection(socket, this.#turns, () => {
      this.#connections.delete(connection);
      this.#connections.add(connection);
    });
    this.#connections.add(connection);
    connection.once("close", () => this.#connections.delete(connection));
    if (this.#connections.size > this.#most) this.#cutSilent();
    return connection;
  }

  #cutSilent(): void {
    for (const connection of this.#connections) {
      this.#connections.delete(connection);
      connection.destroy();
      return;
    }
  }
}

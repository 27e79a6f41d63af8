import { once } from "node:events";
import type { Server } from "node:http";
import { createServer, type Server as SocketServer } from "node:net";
import { duplicateDescriptor } from "@fairlead/kernel";

/**
 * Connections that are accepted in a turn of the event loop. Libuv accepts one for each handle that listens: of 1,000
 * that are opened at once during a sync, the last would wait for 1,000 turns of 10 ms.
 */
const IN_A_TURN = 32;

/**
 * Has a server accept more connections in a turn, by further handles of the socket that it listens on. Where they
 * cannot be had it goes on with its own.
 *
 * @returns closes them
 */
export async function acceptMore(
  server: Server,
  { backlog, highWaterMark }: { readonly backlog: number; readonly highWaterMark: number },
): Promise<() => void> {
  const more: SocketServer[] = [];
  const close = () => {
    for (const one of more) one.close();
  };
  try {
    for (let count = 1; count < IN_A_TURN; count++) {
      // As node:http makes its own.
      const one = createServer({ allowHalfOpen: true, noDelay: true, highWaterMark });
      one.on("connection", (socket) => server.emit("connection", socket));
      const listening = once(one, "listening");
      // Among the options Node passes the backlog over.
      one.listen({ fd: await duplicateDescriptor(descriptorOf(server)) }, backlog);
      await listening;
      // A connection that cannot be accepted is lost, and no reason to end the process.
      one.on("error", () => {});
      more.push(one);
    }
  } catch {
    // One connection in a turn is what it was before.
  }
  return close;
}

/** Node tells it nowhere else. */
function descriptorOf(server: Server): number {
  const { fd } = ("_handle" in server && server._handle ? server._handle : {}) as { readonly fd?: unknown };
  if (typeof fd !== "number" || fd < 0) throw new Error("the server has no socket");
  return fd;
}

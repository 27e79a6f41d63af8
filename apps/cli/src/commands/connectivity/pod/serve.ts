import { createSocket } from "node:dgram";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

/** Milliseconds for which a server that is to end goes on answering: a busy proxy may sync seconds later. */
const DRAIN_MS = 8_000;

/** Says who answers, and which address the client has here, over HTTP and UDP. */
export function serve(name: string, port: number): void {
  const answer = (address: string) => JSON.stringify({ by: name, seen: address.replace(/^::ffff:/, "") });
  const http = createServer(({ socket }, response) => {
    response.writeHead(200, { connection: "close", "content-type": "application/json" });
    response.end(answer(socket.remoteAddress ?? ""));
  });
  http.listen(port);
  // Both families; where a node has no IPv6, only the other one.
  answerDatagrams("udp6", port, answer).once("error", () => answerDatagrams("udp4", port, answer));
  process.once("SIGTERM", async () => {
    await sleep(DRAIN_MS);
    process.exit(0);
  });
}

function answerDatagrams(type: "udp4" | "udp6", port: number, answer: (address: string) => string) {
  const socket = createSocket(type);
  socket.on("message", (_, { address, port: from }) => socket.send(answer(address), from, address));
  return socket.bind(port);
}

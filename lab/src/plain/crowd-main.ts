import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { codeOf } from "../peer/protocol.ts";
import { answerLines } from "../support/script.ts";
import type { CrowdQuestion } from "./crowd.ts";

/**
 * `crowd-main.ts serve PORT` answers each connection with the address and port that it came to. `crowd-main.ts call`
 * takes `CrowdQuestion`s, a line of JSON each, and answers with a list for each client: what each of its sockets met.
 */
const [role, port] = process.argv.slice(2);
/** 200 clients come at once, to a machine that may be busy. */
const PATIENCE_MS = 60_000;

if (role === "serve") {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.end(`${String(socket.localAddress).replace("::ffff:", "")}:${socket.localPort}`);
  });
  server.listen({ host: "::", port: Number(port), backlog: 4096 });
  await once(server, "listening");
}
answerLines(async (line) => {
  const { clients, to, port: toPort, sockets }: CrowdQuestion = JSON.parse(line);
  const each = (client: string) =>
    Promise.all(Array.from({ length: sockets }, () => call(connect({ host: to, port: toPort, localAddress: client }))));
  return JSON.stringify(await Promise.all(clients.map(each)));
});

async function call(socket: Socket): Promise<string> {
  let text = "";
  socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error("lost")));
  socket.setEncoding("utf8").on("data", (data: string) => {
    text += data;
  });
  try {
    await once(socket, "close");
    return text;
  } catch (error) {
    return error instanceof Error && error.message === "lost" ? "lost" : codeOf(error);
  }
}

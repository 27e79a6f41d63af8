import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { codeOf } from "@fairlead/lab/peer/protocol";
import { answerLines } from "@fairlead/lab/support/script";

/**
 * Keeps one TCP connection to a server of the test ground. Each line is a request on it, answered by the server's name,
 * the code of the error that ended it, or `nothing`.
 * Usage: kept-main.ts ADDRESS PORT
 */
const [host = "", port = ""] = process.argv.slice(2);
const PATIENCE_MS = 15_000;

const socket = connect({ host, port: Number(port) });
const ended = new Promise<string>((resolve) => {
  socket.on("error", (error) => resolve(codeOf(error)));
  socket.on("close", () => resolve("closed"));
});

answerLines(async () => {
  const answer = new Promise<string>((resolve) => {
    socket.once("data", (bytes) => resolve(/"server":"([^"]*)"/.exec(bytes.toString())?.[1] ?? "another server"));
  });
  socket.write("GET / HTTP/1.1\r\nhost: kept\r\n\r\n");
  return Promise.race([answer, ended, sleep(PATIENCE_MS, "nothing")]);
});

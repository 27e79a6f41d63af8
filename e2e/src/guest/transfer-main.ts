import { connect } from "node:net";
import { answerLines } from "@fairlead/lab/support/script";

/**
 * Runs inside a namespace: one TCP connection over which requests go on until a line asks for their end, as a long
 * transfer does. It is ready with the first answer; the end is how many answers came and from which server, as JSON.
 */
const [host = "", port = ""] = process.argv.slice(2);
const PAUSE_MS = 20;

const SERVERS: string[] = [];
let ending = false;
const ended = Promise.withResolvers<string>();
const socket = connect(Number(port), host);
const ask = () => socket.write("GET / HTTP/1.1\r\nHost: lab\r\n\r\n");

let text = "";
socket.setEncoding("utf8");
socket.on("connect", ask);
socket.on("data", (piece: string) => {
  text += piece;
  const answer = /^\{.*\}$/m.exec(text)?.[0];
  if (answer === undefined) return;
  text = "";
  SERVERS.push(JSON.parse(answer).server);
  if (SERVERS.length === 1) {
    answerLines(() => {
      ending = true;
      return ended.promise;
    }, "begun");
  }
  if (ending) socket.end();
  else setTimeout(ask, PAUSE_MS);
});
// The code, not the message: whether a read or a write meets the reset is a moment.
socket.on("error", (error: NodeJS.ErrnoException) => finish(error.code ?? error.message));
socket.on("close", () => finish("none"));

/** The first counts. */
function finish(error: string): void {
  ended.resolve(JSON.stringify({ answers: SERVERS.length, servers: [...new Set(SERVERS)], error }));
}

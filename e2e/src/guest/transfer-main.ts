import { connect } from "node:net";

/**
 * Runs inside a namespace: one TCP connection over which requests go on until standard input ends, as a long transfer
 * does. Prints the first answer's server at once, and at the end how many answers came and from which server, as JSON.
 */
const [host = "", port = ""] = process.argv.slice(2);
const PAUSE_MS = 20;

const SERVERS: string[] = [];
let ending = false;
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
  if (SERVERS.length === 1) process.stdout.write("begun\n");
  if (ending) socket.end();
  else setTimeout(ask, PAUSE_MS);
});
// The code, not the message: whether a read or a write meets the reset is a moment.
socket.on("error", (error: NodeJS.ErrnoException) => finish(error.code ?? error.message));
socket.on("close", () => finish("none"));
process.stdin.on("end", () => {
  ending = true;
});
process.stdin.resume();

function finish(error: string): void {
  process.stdout.write(`${JSON.stringify({ answers: SERVERS.length, servers: [...new Set(SERVERS)], error })}\n`);
  process.exit(0);
}

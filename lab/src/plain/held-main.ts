import { connect } from "node:net";
import { createInterface } from "node:readline";
import { codeOf } from "../peer/protocol.ts";

/**
 * `held-main.ts ADDRESS PORT` keeps one TCP connection: each line on standard input is a request, and the server's
 * name, or the error that ends the connection, a line on standard output. Ends with standard input.
 */
const [host = "", port = ""] = process.argv.slice(2);
const socket = connect({ host, port: Number(port) });
socket.on("data", (bytes) => {
  const server = /"server":"([^"]*)"/.exec(bytes.toString())?.[1];
  if (server !== undefined) process.stdout.write(`${server}\n`);
});
socket.on("error", (error) => process.stdout.write(`${codeOf(error)}\n`));

const lines = createInterface({ input: process.stdin });
lines.on("line", () => socket.write("GET / HTTP/1.1\r\nhost: held\r\n\r\n"));
lines.on("close", () => process.exit(0));

import { connect } from "node:net";
import { codeOf } from "../peer/protocol.ts";
import { answerLines } from "../support/script.ts";

/**
 * `held-main.ts ADDRESS PORT` keeps one TCP connection: each line is a request, and answered with the server's name, or
 * the error that ended the connection.
 */
const [host = "", port = ""] = process.argv.slice(2);
let outcome = Promise.withResolvers<string>();
const socket = connect({ host, port: Number(port) });
socket.on("data", (bytes) => {
  const server = /"server":"([^"]*)"/.exec(bytes.toString())?.[1];
  if (server !== undefined) outcome.resolve(server);
});
socket.on("error", (error) => outcome.resolve(codeOf(error)));

answerLines(async () => {
  socket.write("GET / HTTP/1.1\r\nhost: held\r\n\r\n");
  const came = await outcome.promise;
  outcome = Promise.withResolvers();
  return came;
});

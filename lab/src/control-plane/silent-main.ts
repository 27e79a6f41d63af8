import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { createServer } from "node:https";
import { answerLines } from "../support/script.ts";
import { leadOn } from "./lead-on.ts";

/**
 * Stands before the API server, with its certificate, and passes everything on until it reads "silence": then no client
 * gets a further byte, until it reads "answer"; connections that were open before stay silent all the same.
 * Usage: silent-main.ts CERTIFICATE KEY PORT HOST HOST-PORT
 */
const [, , certFile = "", keyFile = "", port = "", host = "", hostPort = ""] = process.argv;

const open = new Set<IncomingMessage>();
let silence = false;

const files = { cert: readFileSync(certFile), key: readFileSync(keyFile) };
const server = createServer(files, (incoming, response) => {
  if (silence) return;
  leadOn(incoming, response, { host, port: hostPort }, (answer) => {
    answer.pipe(response);
    open.add(answer);
    answer.once("close", () => open.delete(answer));
  });
});

server.on("clientError", (_: Error, socket: IncomingMessage["socket"]) => socket.destroy());
server.listen(Number(port), () => {
  answerLines((line) => {
    silence = line === "silence";
    if (silence) for (const answer of open) answer.unpipe().pause();
    return "";
  });
});

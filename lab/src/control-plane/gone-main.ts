import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import { createInterface } from "node:readline";
import { answerLines } from "../support/script.ts";
import { leadOn } from "./lead-on.ts";

/**
 * Stands before the API server, with its certificate: every watch ends with 410 Gone, by turns as the response's status
 * and as an event; everything else is led on. A list that is asked for as a watch (WatchList) is whole before it ends
 * so.
 * Says when it is asked how many watches it has answered so.
 * Usage: gone-main.ts CERTIFICATE KEY PORT HOST HOST-PORT
 */
const [, , certFile = "", keyFile = "", port = "", host = "", hostPort = ""] = process.argv;

const MESSAGE = "too old resource version";
const gone = { kind: "Status", apiVersion: "v1", status: "Failure", message: MESSAGE, reason: "Expired", code: 410 };
const goneEvent = `${JSON.stringify({ type: "ERROR", object: gone })}\n`;
const JSON_TYPE = { "content-type": "application/json" };
let count = 0;

const files = { cert: readFileSync(certFile), key: readFileSync(keyFile) };
const server = createServer(files, (incoming, response) => {
  const query = new URL(incoming.url ?? "/", "https://host").searchParams;
  const watches = query.get("watch") === "true" || query.get("watch") === "1";
  if (watches && query.get("sendInitialEvents") !== "true") return refuse(response);
  leadOn(incoming, response, { host, port: hostPort }, (answer) => {
    if (watches && answer.statusCode === 200) giveInitialEvents(answer, response);
    else answer.pipe(response);
  });
});

function refuse(response: ServerResponse): void {
  if (count++ % 2 === 0) response.writeHead(410, JSON_TYPE).end(JSON.stringify(gone));
  else response.writeHead(200, JSON_TYPE).end(goneEvent);
}

function giveInitialEvents(answer: IncomingMessage, response: ServerResponse): void {
  const lines = createInterface({ input: answer });
  lines.on("error", () => response.destroy());
  lines.on("line", (line) => {
    if (response.writableEnded) return;
    response.write(`${line}\n`);
    if (!line.includes("k8s.io/initial-events-end")) return;
    count++;
    response.end(goneEvent);
  });
}

server.listen(Number(port), () => answerLines(() => String(count)));

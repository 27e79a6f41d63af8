import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, request } from "node:https";
import { createInterface } from "node:readline";

/**
 * Stands before the API server, with its certificate: every watch ends with 410 Gone, by turns as the response's status and
 * as an event; everything else is led on. A list that is asked for as a watch (WatchList) is whole before it ends so.
 * Ends with standard input, and then prints how many watches it has answered so.
 * Usage: gone-main.ts CERTIFICATE KEY PORT HOST HOST-PORT
 */
const [, , certFile = "", keyFile = "", port = "", host = "", hostPort = ""] = process.argv;

const message = "too old resource version";
const gone = { kind: "Status", apiVersion: "v1", status: "Failure", message, reason: "Expired", code: 410 };
const goneEvent = `${JSON.stringify({ type: "ERROR", object: gone })}\n`;
const json = { "content-type": "application/json" };
let count = 0;

const files = { cert: readFileSync(certFile), key: readFileSync(keyFile) };
const server = createServer(files, (incoming, response) => {
  const query = new URL(incoming.url ?? "/", "https://host").searchParams;
  const watches = query.get("watch") === "true" || query.get("watch") === "1";
  if (watches && query.get("sendInitialEvents") !== "true") return refuse(response);
  leadOn(incoming, response, watches);
});

function refuse(response: ServerResponse): void {
  if (count++ % 2 === 0) response.writeHead(410, json).end(JSON.stringify(gone));
  else response.writeHead(200, json).end(goneEvent);
}

function leadOn(incoming: IncomingMessage, response: ServerResponse, watches: boolean): void {
  const { method, url: path, headers } = incoming;
  // Its certificate is the one in hand.
  const outgoing = request({ host, port: hostPort, method, path, headers, rejectUnauthorized: false });
  outgoing.on("error", () => response.destroy());
  response.on("close", () => outgoing.destroy());
  outgoing.on("response", (answer) => {
    // The client may be gone before the answer is whole.
    answer.on("error", () => response.destroy());
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    if (!watches || answer.statusCode !== 200) {
      answer.pipe(response);
      return;
    }
    const lines = createInterface({ input: answer });
    lines.on("error", () => response.destroy());
    lines.on("line", (line) => {
      if (response.writableEnded) return;
      response.write(`${line}\n`);
      if (!line.includes("k8s.io/initial-events-end")) return;
      count++;
      response.end(goneEvent);
    });
  });
  incoming.pipe(outgoing);
}

server.listen(Number(port), () => process.stdout.write("ready\n"));
process.stdin.resume().on("end", () => {
  console.log(String(count));
  process.exit(0);
});

import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { answerLines } from "../support/script.ts";
import { leadOn } from "./lead-on.ts";

/**
 * Stands before the API server, with its certificate, and answers every request below a path with 429 and
 * `Retry-After: 1`, as priority and fairness does whose queues are full; everything else is led on. Says when it is
 * asked how many requests it has answered so.
 * Usage: busy-main.ts CERTIFICATE KEY PORT HOST HOST-PORT PATH
 */
const [, , certFile = "", keyFile = "", port = "", host = "", hostPort = "", path = ""] = process.argv;

const MESSAGE = "too many requests, please try again later";
const busy = { kind: "Status", apiVersion: "v1", status: "Failure", message: MESSAGE, reason: "TooManyRequests" };
const answer = JSON.stringify({ ...busy, code: 429 });
let count = 0;

const files = { cert: readFileSync(certFile), key: readFileSync(keyFile) };
const server = createServer(files, (incoming, response) => {
  if (incoming.url?.startsWith(path) !== true) return leadOn(incoming, response, { host, port: hostPort });
  count++;
  response.writeHead(429, { "content-type": "application/json", "retry-after": "1" }).end(answer);
});

server.listen(Number(port), () => answerLines(() => String(count)));

import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import { answerLines } from "../support/script.ts";
import { leadOn } from "./lead-on.ts";

/**
 * Stands before the API server, with its certificate, and is hostile in one way to everybody who lists services, of
 * which nobody can have a watch; everything else is led on. `silent` leads everything on until it is told "silence":
 * then nobody hears a further byte, until it is told "answer"; what was open before stays silent all the same. Says
 * when it is asked how many requests it has answered in its own way, and how many bytes it has sent so.
 * Usage: hostile-main.ts CERTIFICATE KEY PORT HOST HOST-PORT WAY
 */
const [, , certFile = "", keyFile = "", port = "", host = "", hostPort = "", way = ""] = process.argv;

const LARGE = 700 << 20;
const JSON_TYPE = { "content-type": "application/json" };
const open = new Set<IncomingMessage>();
let silence = false;
let requests = 0;
let bytes = 0;

const ways: Readonly<Record<string, (response: ServerResponse) => void>> = {
  silent: () => {},
  "one string": (response) => stream(response, `${OPENING}"metadata":{"name":"large","annotations":{"a":"`, "x"),
  nesting: (response) => stream(response, `${OPENING}"metadata":{"name":"deep"},"spec":`, "["),
  "endless continue": (response) => {
    const metadata = { resourceVersion: "1", continue: `page-${requests}` };
    const item = { metadata: { name: `endless-${requests % 10}`, namespace: "default" }, spec: {} };
    response
      .writeHead(200, JSON_TYPE)
      .end(JSON.stringify({ kind: "ServiceList", apiVersion: "v1", metadata, items: [item] }));
  },
};
const OPENING = '{"kind":"ServiceList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{';
const act = ways[way];
if (act === undefined) throw new Error(`no way ${way}; give one of ${Object.keys(ways).join(", ")}`);

const files = { cert: readFileSync(certFile), key: readFileSync(keyFile) };
const server = createServer(files, (incoming, response) => {
  const { pathname, searchParams } = new URL(incoming.url ?? "/", "https://host");
  if (silence) return;
  if (way === "silent" || pathname !== "/api/v1/services") {
    return leadOn(incoming, response, { host, port: hostPort }, (answer) => {
      answer.pipe(response);
      open.add(answer);
      answer.once("close", () => open.delete(answer));
    });
  }
  requests++;
  if (searchParams.has("watch")) return refuse(response, searchParams.has("sendInitialEvents"));
  act(response);
});

/** Neither a watch nor a list by one: what is left is a list. */
function refuse(response: ServerResponse, initial: boolean): void {
  const code = initial ? 422 : 410;
  const status = { kind: "Status", apiVersion: "v1", status: "Failure", message: "not so", code };
  response.writeHead(code, JSON_TYPE).end(JSON.stringify(status));
}

/** So much of one letter, as fast as it is taken. */
function stream(response: ServerResponse, before: string, letter: string): void {
  const piece = letter.repeat(1 << 20);
  let sent = 0;
  const more = () => {
    while (sent < LARGE && !response.destroyed) {
      sent += piece.length;
      bytes += piece.length;
      if (!response.write(piece)) return;
    }
    response.end();
  };
  response.writeHead(200, JSON_TYPE).write(before);
  response.on("drain", more);
  more();
}

server.on("clientError", (_: Error, socket: IncomingMessage["socket"]) => socket.destroy());
server.listen(Number(port), () => {
  answerLines((line) => {
    silence = line === "silence";
    if (silence) for (const answer of open) answer.unpipe().pause();
    return JSON.stringify({ requests, bytes });
  });
});

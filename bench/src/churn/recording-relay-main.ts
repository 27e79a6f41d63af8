/**
 * Stands between a proxy and the API server, with the API server's certificate, and records what passes. Answers each
 * line with the `Recording` so far. Usage: recording-relay-main.ts CERTIFICATE KEY HOST PORT SERVER-PORT
 */

import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import { Agent, request } from "node:https";
import { answerLines } from "@fairlead/lab/support/script";
import { now } from "@fairlead/lab/support/wait-until";
import { AddressScanner } from "./addresses.ts";
import type { Recording, SeenRequest } from "./figures.ts";

const [, , certFile = "", keyFile = "", host = "", port = "", serverPort = ""] = process.argv;

/** Headers of one connection; HTTP/2 does not have them. */
const HOP_BY_HOP = ["connection", "keep-alive", "transfer-encoding", "upgrade"];

const requests: SeenRequest[] = [];
const addresses = new Map<string, number>();
const behind = new Agent({ keepAlive: true, rejectUnauthorized: false });

const server = createSecureServer({ cert: readFileSync(certFile), key: readFileSync(keyFile), allowHTTP1: true });
server.on("request", lead);

function lead(incoming: Http2ServerRequest, response: Http2ServerResponse): void {
  const { method, url: path, httpVersion: protocol } = incoming;
  const seen: SeenRequest = { at: now(), method, path, status: 0, bytes: 0, protocol, encoding: "" };
  requests.push(seen);
  const headers = Object.fromEntries(Object.entries(incoming.headers).filter(([name]) => !name.startsWith(":")));
  const options = { host, port: serverPort, method, path, agent: behind };
  const outgoing = request({ ...options, headers: withoutHops({ ...headers, host: `${host}:${port}` }) });
  outgoing.on("error", () => drop(response));
  response.on("close", () => {
    seen.endedAt = now();
    outgoing.destroy();
  });
  outgoing.on("response", (answer) => hand(answer, response, seen));
  incoming.pipe(outgoing);
}

function hand(answer: IncomingMessage, response: Http2ServerResponse, seen: SeenRequest): void {
  const scanner = new AddressScanner(addresses);
  seen.status = answer.statusCode ?? 502;
  seen.encoding = answer.headers["content-encoding"] ?? "";
  response.writeHead(seen.status, withoutHops(answer.headers));
  answer.on("error", () => drop(response));
  answer.on("data", (chunk: Buffer) => {
    scanner.read(chunk, now());
    seen.bytes += chunk.length;
  });
  answer.pipe(response);
}

/** Of HTTP/1 there is only the connection. */
function drop(response: Http2ServerResponse): void {
  (response.stream ?? response.socket)?.destroy();
}

function withoutHops(headers: Readonly<Record<string, string | readonly string[] | undefined>>) {
  const kept = Object.entries(headers).filter(([name, value]) => !HOP_BY_HOP.includes(name) && value !== undefined);
  return Object.fromEntries(kept) as Record<string, string | string[]>;
}

function answer(): Promise<string> {
  const recording: Recording = { requests, addresses: Object.fromEntries(addresses) };
  return Promise.resolve(JSON.stringify(recording));
}

await new Promise<void>((resolve, reject) => {
  server.once("error", reject);
  server.listen(Number(port), host, resolve);
});
answerLines(answer);

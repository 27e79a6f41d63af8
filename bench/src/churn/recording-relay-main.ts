/**
 * Stands between a proxy and the API server, with the API server's certificate, and records what passes. Answers lines:
 * `take` with the `Recording` so far; `down` and `up` once it refuses connections, as a server that has ended does, or
 * takes them again. Usage: recording-relay-main.ts CERTIFICATE KEY HOST PORT SERVER-PORT
 */
import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import { Agent, request } from "node:https";
import type { Socket } from "node:net";
import { answerLines } from "@fairlead/lab/support/answer-lines";
import { now } from "../cluster/now.ts";
import { AddressScanner } from "./addresses.ts";
import type { Recording, SeenRequest } from "./recording.ts";

const [, , certFile = "", keyFile = "", host = "", port = "", serverPort = ""] = process.argv;

/** Of one connection; HTTP/2 has none of them. */
const HOP_BY_HOP = ["connection", "keep-alive", "transfer-encoding", "upgrade"];

const requests: SeenRequest[] = [];
const addresses = new Map<string, number>();
const sockets = new Set<Socket>();
let connections = 0;
const behind = new Agent({ keepAlive: true, rejectUnauthorized: false });

const server = createSecureServer({ cert: readFileSync(certFile), key: readFileSync(keyFile), allowHTTP1: true });
server.on("request", lead);
server.on("secureConnection", () => connections++);
server.on("connection", (socket: Socket) => {
  sockets.add(socket);
  socket.on("close", () => sockets.delete(socket));
});

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

function listen(): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(Number(port), host, resolve);
  });
}

async function answer(line: string): Promise<string> {
  if (line === "up") await listen();
  if (line === "down") {
    server.close();
    for (const socket of sockets) socket.destroy();
  }
  const recording: Recording = { requests, connections, addresses: Object.fromEntries(addresses) };
  return line === "take" ? JSON.stringify(recording) : line;
}

await listen();
answerLines(answer);

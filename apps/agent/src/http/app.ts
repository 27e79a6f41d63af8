import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { isLoopback, parseAddress } from "@fairlead/base";
import { PLAIN_TEXT } from "./answers.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | Readable;
}

/** What a client asked for, alongside the path. */
export interface HttpRequest {
  readonly method: string;
  readonly query: URLSearchParams;
  /** The Accept header, "" without one. */
  readonly accept: string;
  /** It came over the loopback interface. */
  readonly local: boolean;
  /** Aborts when the client is gone, and when it has its answer. */
  readonly gone: AbortSignal;
}

export type Handler = (asked: HttpRequest) => Answer | Promise<Answer>;

/** What answers at a path, whatever the method, as Go's mux has it; undefined: nothing. */
export type App = (path: string) => Handler | undefined;

/** Handlers by their path. */
export function routes(handlers: Readonly<Record<string, Handler>>): App {
  const byPath = new Map(Object.entries(handlers));
  return (path) => byPath.get(path);
}

/**
 * Serves an app by node:http only. Frameworks that speak fetch's Request and Response have Node load its whole HTTP
 * client for the two classes, which costs 15 MB of resident memory.
 */
export function requestListener(app: App): RequestListener {
  return (request, response) => {
    const { path, asked } = read(request, response);
    const answer = answerTo(app, path, asked);
    // At once where it can be, so that a measured request time is complete.
    if (answer instanceof Promise) void answer.then((late) => send(response, late));
    else send(response, answer);
  };
}

function read(request: IncomingMessage, response: ServerResponse): { path: string; asked: HttpRequest } {
  const { url = "/", method = "GET", headers } = request;
  const [path = "/", query] = url.split("?", 2);
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  return {
    path,
    asked: {
      method,
      local: isLoopback(peerOf(request)),
      query: new URLSearchParams(query),
      accept: headers.accept ?? "",
      gone: gone.signal,
    },
  };
}

/** As an IPv4 address where it is one, also on a socket of both families. */
function peerOf({ socket }: IncomingMessage): string {
  return parseAddress(socket.remoteAddress ?? "")?.text ?? "";
}

/** Never throws or rejects: a handler that does is an answer, too. */
export function answerTo(app: App, path: string, asked: HttpRequest): Answer | Promise<Answer> {
  const handler = app(path);
  if (handler === undefined) return { status: 404, headers: PLAIN_TEXT, body: "404 page not found\n" };
  try {
    const answer = handler(asked);
    return answer instanceof Promise ? answer.catch(() => BROKEN) : answer;
  } catch {
    return BROKEN;
  }
}

const BROKEN: Answer = { status: 500, headers: PLAIN_TEXT, body: "Internal Server Error\n" };

function send(response: ServerResponse, { status, headers, body }: Answer): void {
  if (body instanceof Readable) {
    response.writeHead(status, headers);
    // A reader that is gone is no failure.
    pipeline(body, response).catch(() => response.destroy());
  } else {
    // Written by itself, Node's header would announce chunks, which simple probes do not read.
    response.writeHead(status, { ...headers, "Content-Length": String(Buffer.byteLength(body)) });
    response.end(body);
  }
}

/** Requests and answers: routes, headers, what a client accepts. */

import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { isLoopback, parseAddress } from "@fairlead/base";

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

/**
 * Headers as the Go services of Kubernetes send them: no charset on JSON, and no guessing of types on anything.
 */
export const PLAIN_TEXT = {
  "Content-Type": "text/plain; charset=utf-8",
  "X-Content-Type-Options": "nosniff",
} as const;

export const JSON_TYPE = {
  "Content-Type": "application/json",
  "X-Content-Type-Options": "nosniff",
} as const;

/** A time as Go's encoding/json writes it (RFC3339Nano: no trailing zeros); its zero value where there is none. */
export function goTime(ms: number): string {
  return ms === 0 ? "0001-01-01T00:00:00Z" : new Date(ms).toISOString().replace(/\.?0*Z$/, "Z");
}

/** What is to be sent: text, or an object of a version in a media type. */
type Chosen =
  | { readonly kind: "text" }
  | { readonly kind: "object"; readonly mediaType: "application/json" | "application/yaml"; readonly version: string };

const TEXT = ["text/plain", "text/*", "*/*"];
const STRUCTURED = [
  ["application/json", ["application/json", "application/*", "*/*"]],
  ["application/yaml", ["application/yaml"]],
] as const;

/**
 * Chooses between text and an object of `group` as API servers do (KEP-4827): text for a type without parameters, an
 * object for one that names it by `g`, `v` and `as`.
 *
 * @param header of Accept; "": whatever there is
 * @returns undefined: nothing that the client accepts
 */
export function negotiate(
  header: string,
  { group, kind, versions }: { readonly group: string; readonly kind: string; readonly versions: readonly string[] },
): Chosen | undefined {
  if (header.trim() === "") return { kind: "text" };
  for (const { type, params } of clauses(header)) {
    const [g, v, as] = [params.get("g"), params.get("v"), params.get("as")];
    if (g === undefined && v === undefined && as === undefined) {
      if (TEXT.includes(type)) return { kind: "text" };
    } else if (g === group && as === kind && v !== undefined && versions.includes(v)) {
      const mediaType = STRUCTURED.find(([, accepted]) => accepted.some((one) => one === type))?.[0];
      if (mediaType !== undefined) return { kind: "object", mediaType, version: v };
    }
  }
  return undefined;
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

/** A media type that a client accepts, with its parameters. */
interface Clause {
  readonly type: string;
  readonly params: ReadonlyMap<string, string>;
  readonly quality: number;
}

/** Best first. */
function clauses(header: string): readonly Clause[] {
  const all = header.split(",").map((clause): Clause => {
    const [type = "", ...rest] = clause.split(";").map((part) => part.trim());
    const params = new Map(
      rest.map((part) => [part.split("=", 1)[0] ?? "", part.split("=").slice(1).join("=")] as const),
    );
    return { type: type.toLowerCase(), params, quality: Number(params.get("q") ?? 1) };
  });
  return all.filter(({ quality }) => quality > 0).sort((a, b) => b.quality - a.quality);
}

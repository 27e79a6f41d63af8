import type { RequestListener, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { plainText } from "./answers.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Readable;
}

export type Handler = (query: URLSearchParams) => Answer | Promise<Answer>;

/** What answers at a path, whatever the method, as Go's mux has it; undefined: nothing. */
export type App = (path: string) => Handler | undefined;

/** Handlers by their path. */
export function routes(handlers: Readonly<Record<string, Handler>>): App {
  const byPath = new Map(Object.entries(handlers));
  return (path) => byPath.get(path);
}

/**
 * Serves an app by node:http alone. Frameworks that speak fetch's Request and Response have Node load its whole HTTP client
 * for the two classes, which costs 15 MB of resident memory.
 */
export function requestListener(app: App): RequestListener {
  return ({ url = "/" }, response) => {
    const [path = "/", query] = url.split("?", 2);
    answerTo(app, path, new URLSearchParams(query))
      .then((answer) => send(response, answer))
      // Nobody reads any more.
      .catch(() => response.destroy());
  };
}

/** Never rejects: a handler that throws is an answer, too. */
export async function answerTo(app: App, path: string, query: URLSearchParams): Promise<Answer> {
  const handler = app(path);
  if (handler === undefined) return { status: 404, headers: plainText, body: "404 page not found\n" };
  try {
    return await handler(query);
  } catch {
    return { status: 500, headers: plainText, body: "Internal Server Error\n" };
  }
}

async function send(response: ServerResponse, { status, headers, body }: Answer): Promise<void> {
  response.writeHead(status, headers);
  if (body instanceof Readable) await pipeline(body, response);
  else response.end(body);
}

/** The console's HTTP server: pages, answers, and the policy for contents. */

import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { errorText } from "@fairlead/base";
import { RequestError, refusal, Session, secret } from "./guard.ts";
import type { Stream } from "./stream.ts";

/** Answers a question of the page with JSON. @throws RequestError for a question that cannot be answered */
export type Answer = (query: URLSearchParams, body: unknown) => Promise<unknown>;

export interface RunningServer {
  /** With the token: for the user's browser only, and for one visit. */
  readonly url: string;
  close(): Promise<void>;
}

interface ServerOptions {
  /** The whole page, in one file. */
  readonly html: string;
  /** 0: any that is free. */
  readonly port: number;
  readonly stream: Stream;
  /** Answers by GET, by path: `/api/service`. */
  readonly gets: Readonly<Record<string, Answer>>;
  /** Answers by POST. */
  readonly posts: Readonly<Record<string, Answer>>;
}

const HOST = "127.0.0.1";

/**
 * Serves the page on this machine. Everything lies below an unguessable path; answers are given to the browser only
 * that has brought the token of the address.
 */
export async function serve(options: ServerOptions): Promise<RunningServer> {
  const base = `/${secret().slice(0, 22)}`;
  const site = new Site(options, base);
  const server = createServer((request, response) => void site.answer(request, response));
  server.listen(options.port, HOST);
  await once(server, "listening");
  const bound = server.address();
  const port = bound !== null && typeof bound === "object" ? bound.port : options.port;
  site.authority = `${HOST}:${port}`;
  return {
    url: `http://${HOST}:${port}${base}/#token=${site.session.token}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

const INLINE = /<(script|style)\b[^>]*>([\s\S]*?)<\/\1>/g;

/**
 * What a page of one file may do: run and wear what stands in it, by its hash, and ask the server that it came from.
 *
 * @param html has no script or style from elsewhere
 */
export function contentSecurityPolicy(html: string): string {
  const hashes = (wanted: string) =>
    Array.from(html.matchAll(INLINE), ([, name, text = ""]) =>
      name === wanted ? ` 'sha256-${sha256(text)}'` : "",
    ).join("");
  return [
    "default-src 'none'",
    `script-src${hashes("script")}`,
    `style-src${hashes("style")}`,
    "connect-src 'self'",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
}

const SESSION = "/session";
const EVENTS = "/events";

class Site {
  readonly session: Session;
  /** Known once the server listens. */
  authority = "";
  readonly #options: ServerOptions;
  readonly #base: string;
  readonly #posts: ReadonlySet<string>;
  readonly #policy: string;

  constructor(options: ServerOptions, base: string) {
    this.#options = options;
    this.#base = base;
    this.session = new Session(`${base}/`);
    this.#posts = new Set([SESSION, ...Object.keys(options.posts)]);
    this.#policy = contentSecurityPolicy(options.html);
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.#route(request, response);
    } catch (error) {
      if (response.headersSent) response.destroy();
      else this.#send(response, error instanceof RequestError ? error.status : 500, { error: errorText(error) });
    }
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? "/", `http://${HOST}`);
    const path = pathname.startsWith(`${this.#base}/`) ? pathname.slice(this.#base.length) : "";
    const { host, origin, cookie } = request.headers;
    const site = oneOf(request.headers["sec-fetch-site"]);
    const method = request.method ?? "";
    const why = refusal({ method, path, host, origin, site }, { authority: this.authority, posts: this.#posts });
    if (why !== undefined) {
      if (why.allow !== undefined) response.setHeader("allow", why.allow);
      throw new RequestError(why.status, why.why);
    }
    if (path === "/") return this.#page(response);
    if (path === SESSION) return this.#open(await jsonBody(request), response);
    const { gets, posts, stream } = this.#options;
    const isKnown = path === EVENTS || Object.hasOwn(gets, path) || Object.hasOwn(posts, path);
    if (!isKnown) throw new RequestError(404, "nothing is here");
    if (!this.session.knows(cookie)) throw new RequestError(401, "this browser has not opened the console");
    if (path === EVENTS) return stream.serve(this.#plain(response), oneOf(request.headers["last-event-id"]));
    const answer = gets[path] ?? posts[path];
    if (answer === undefined) throw new RequestError(404, "nothing is here");
    this.#send(response, 200, await answer(searchParams, method === "POST" ? await jsonBody(request) : undefined));
  }

  #page(response: ServerResponse): void {
    this.#plain(response).writeHead(200, {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": this.#policy,
      "cross-origin-opener-policy": "same-origin",
    });
    response.end(this.#options.html);
  }

  #open(body: unknown, response: ServerResponse): void {
    const token = typeof body === "object" && body !== null && "token" in body ? body.token : undefined;
    const cookie = typeof token === "string" ? this.session.exchange(token) : undefined;
    if (cookie === undefined) throw new RequestError(401, "this address was used before; start the console again");
    response.setHeader("set-cookie", cookie);
    this.#send(response, 200, {});
  }

  #send(response: ServerResponse, status: number, data: unknown): void {
    this.#plain(response).writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(data));
  }

  /** The headers of every answer: no caching, no framing, no sniffing, no referrer. */
  #plain(response: ServerResponse): ServerResponse {
    response.setHeader("cache-control", "no-store");
    response.setHeader("x-content-type-options", "nosniff");
    response.setHeader("x-frame-options", "DENY");
    response.setHeader("referrer-policy", "no-referrer");
    response.setHeader("cross-origin-resource-policy", "same-origin");
    return response;
  }
}

function oneOf(header: string | readonly string[] | undefined): string | undefined {
  return typeof header === "string" || header === undefined ? header : header[0];
}

/** Bytes of pasted manifests that are taken: more than etcd takes of one object, less than hurts. */
const MOST_BYTES = 2 << 20;

/** The JSON that a request brings. */
async function jsonBody(request: IncomingMessage): Promise<unknown> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of request) {
    size += piece.length;
    if (size > MOST_BYTES) throw new RequestError(413, `at most ${MOST_BYTES} bytes`);
    pieces.push(piece);
  }
  try {
    return JSON.parse(Buffer.concat(pieces).toString("utf8"));
  } catch {
    throw new RequestError(400, "the request is not JSON");
  }
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("base64");
}

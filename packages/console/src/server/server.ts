import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { errorText } from "@fairlead/base";
import { jsonBody } from "./body.ts";
import { contentSecurityPolicy } from "./csp.ts";
import { refusal } from "./guard.ts";
import { RequestError } from "./request-error.ts";
import { Session, secret } from "./session.ts";
import type { Stream } from "./stream.ts";

/** Answers a question of the page with JSON. @throws RequestError for a question that cannot be answered */
export type Answer = (query: URLSearchParams, body: unknown) => Promise<unknown>;

export interface ServerOptions {
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

export interface RunningServer {
  /** With the token: for the user's browser only, and for one visit. */
  readonly url: string;
  close(): Promise<void>;
}

const HOST = "127.0.0.1";
const SESSION = "/session";
const EVENTS = "/events";

/**
 * Serves the page on this machine. Everything lies below an unguessable path; answers are given to the browser
 * only that has brought the token of the address.
 *
 * @throws Error when the port is taken
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

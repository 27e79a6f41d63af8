/** Which requests are answered: hosts, origins, the session, and what is refused. */

import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

/** A request as far as it decides whether anybody may ask at all. */
export interface GuardedRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly host: string | undefined;
  readonly origin: string | undefined;
  /** The header Sec-Fetch-Site; absent where no browser asks. */
  readonly site: string | undefined;
}

interface GuardOptions {
  /** `127.0.0.1:43210` */
  readonly authority: string;
  /** The paths that are asked by POST; all others by GET. */
  readonly posts: ReadonlySet<string>;
}

interface Refusal {
  readonly status: 403 | 405 | 421;
  readonly why: string;
  /** What the header Allow says. */
  readonly allow?: string;
}

/**
 * Refuses what no page of ours sends: another host name that resolves to this machine (DNS rebinding), requests that
 * another site's page makes, and methods that nothing here has.
 *
 * @returns undefined: it may be answered
 */
export function refusal(asked: GuardedRequest, { authority, posts }: GuardOptions): Refusal | undefined {
  const { method, path, host, origin, site } = asked;
  if (host !== authority) return { status: 421, why: `this is ${authority}` };
  const own = origin === `http://${authority}`;
  const isPost = posts.has(path);
  const allow = isPost ? "POST" : "GET";
  if (method !== allow) return { status: 405, why: `only ${allow}`, allow };
  // A page of the same origin says so with everything but a plain GET.
  if (origin !== undefined ? !own : isPost) return { status: 403, why: "asked by a page of another origin" };
  if (site !== undefined && site !== "same-origin" && !isFirstVisit(asked)) {
    return { status: 403, why: "asked by a page of another site" };
  }
  return undefined;
}

const COOKIE = "fairlead";

/**
 * Who may ask: the browser that has brought the token of the address that was printed. The token is good for once; the
 * cookie that it is exchanged for is good for as long as the process runs.
 */
export class Session {
  /** Stands in the address's fragment, which no server is sent. */
  readonly token = secret();
  readonly #cookie = secret();
  readonly #path: string;
  #spent = false;

  /** @param path the cookie is sent for what lies below it, so that no other server of this host name gets it */
  constructor(path: string) {
    this.#path = path;
  }

  /** @returns the header Set-Cookie, or undefined where the token is wrong or was used before */
  exchange(token: string): string | undefined {
    if (this.#spent || !same(token, this.token)) return undefined;
    this.#spent = true;
    return `${COOKIE}=${this.#cookie}; HttpOnly; SameSite=Strict; Path=${this.#path}`;
  }

  /** @param header the request's header Cookie */
  knows(header: string | undefined): boolean {
    const given = (header ?? "").split(";").map((one) => one.trim().split("="));
    return given.some(([name, value = ""]) => name === COOKIE && same(value, this.#cookie));
  }
}

/** 256 bits, in letters that mean nothing in an address. */
export function secret(): string {
  return randomBytes(32).toString("base64url");
}

/** Why a request has no answer, in words for the client. */
export class RequestError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = "RequestError";
    this.status = status;
  }
}

/** The page itself holds nothing: it may be come to from anywhere, such as the file that opens the browser. */
function isFirstVisit({ path }: GuardedRequest): boolean {
  return path === "/";
}

/** Takes as long for every wrong text. */
function same(a: string, b: string): boolean {
  return timingSafeEqual(digest(a), digest(b));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

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

export interface Refusal {
  readonly status: 403 | 405 | 421;
  readonly why: string;
  /** What the header Allow says. */
  readonly allow?: string;
}

export interface GuardOptions {
  /** `127.0.0.1:43210` */
  readonly authority: string;
  /** The paths that are asked by POST; all others by GET. */
  readonly posts: ReadonlySet<string>;
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

/** The page itself holds nothing: it may be come to from anywhere, such as the file that opens the browser. */
function isFirstVisit({ path }: GuardedRequest): boolean {
  return path === "/";
}

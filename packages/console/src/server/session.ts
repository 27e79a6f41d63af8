import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

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

/** Takes as long for every wrong text. */
function same(a: string, b: string): boolean {
  return timingSafeEqual(digest(a), digest(b));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/** `list`: a watch that begins with all objects. `sign`: whether the server is alive. */
export type FleetKind = "list" | "watch" | "sign";

export function kindOf(path: string): FleetKind {
  if (path === "/version") return "sign";
  return path.includes("sendInitialEvents") ? "list" : "watch";
}

/** What a fleet asked of its server since the counting began. */
export class FleetCounts {
  readonly requests: Record<FleetKind, number> = { list: 0, watch: 0, sign: 0 };
  /** Attempts that found no server. */
  unanswered = 0;
  /** Lists that were asked to come later. */
  refused = 0;
  /** Lists that were answered. */
  lists = 0;
  bookmarks = 0;
  /** Requests that reached the server, by second. */
  readonly #seconds = new Map<number, number>();

  /** @param at milliseconds */
  add(kind: FleetKind, at: number, isUp: boolean): void {
    if (!isUp) {
      this.unanswered++;
      return;
    }
    this.requests[kind]++;
    const second = Math.floor(at / 1000);
    this.#seconds.set(second, (this.#seconds.get(second) ?? 0) + 1);
  }

  get allRequests(): number {
    return this.requests.list + this.requests.watch + this.requests.sign;
  }

  get mostInASecond(): number {
    return Math.max(0, ...this.#seconds.values());
  }
}

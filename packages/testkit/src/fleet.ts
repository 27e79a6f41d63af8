/** Many agents at one API server: their requests, and its answers and limits. */

import type { VirtualClock } from "@fairlead/base/testing";

/** What an API server can take, as its flags and its priority levels say. */
export interface Limits {
  /** Lists that are answered at a time: the seats of one priority level. */
  readonly seats: number;
  /** Lists that wait for a seat; those beyond are asked to come again in a second (429). */
  readonly queue: number;
  /** Milliseconds that one list takes its seat for. */
  readonly listMilliseconds: number;
}

interface Waiting {
  readonly go: () => void;
  readonly signal: AbortSignal;
}

/** As `@fairlead/watch` has it. */
interface FleetRequest {
  readonly path: string;
  readonly signal: AbortSignal;
}

interface FleetAnswer {
  readonly status: number;
  header(name: string): string | undefined;
  readonly body: AsyncIterable<Uint8Array>;
}

/** Between two bookmarks of a watch, milliseconds. */
const BOOKMARK_EVERY = 60_000;

/** An API server of many agents on a virtual clock. Lists take a seat; watches are begun at once and stay. */
export class FleetServer {
  readonly #clock: VirtualClock;
  readonly #limits: Limits;
  readonly #queue: Waiting[] = [];
  readonly #open = new Set<() => void>();
  #taken = 0;
  #version = 1;
  #oldest = 1;
  up = true;
  counts = new FleetCounts();

  constructor(clock: VirtualClock, limits: Limits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  get watches(): number {
    return this.#open.size;
  }

  /** All connections break, and what was known of earlier versions is gone, as with a restart. */
  stop(): void {
    this.up = false;
    this.#oldest = ++this.#version;
    for (const { go } of this.#queue.splice(0)) go();
    for (const end of [...this.#open]) end();
    this.#open.clear();
  }

  readonly transport = async ({ path, signal }: FleetRequest): Promise<FleetAnswer> => {
    this.counts.add(kindOf(path), this.#clock.monotonic(), this.up);
    if (!this.up) throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
    const { pathname, searchParams } = new URL(path, "http://api");
    if (pathname === "/version") return answer(200);
    const seconds = Number(searchParams.get("timeoutSeconds"));
    if (searchParams.has("sendInitialEvents")) return this.#list(seconds, signal);
    if (Number(searchParams.get("resourceVersion")) < this.#oldest) return answer(410);
    return this.#watch("", seconds, signal);
  };

  async #list(seconds: number, signal: AbortSignal): Promise<FleetAnswer> {
    const { seats, queue, listMilliseconds } = this.#limits;
    if (this.#taken >= seats) {
      if (this.#queue.length >= queue) return this.#refuse();
      await new Promise<void>((go) => this.#queue.push({ go, signal }));
      if (!this.up || signal.aborted) throw new Error("read ECONNRESET");
    }
    this.#taken++;
    await new Promise<void>((done) => this.#clock.after(listMilliseconds, done));
    this.#taken--;
    this.#queue.shift()?.go();
    if (!this.up) throw new Error("read ECONNRESET");
    this.counts.lists++;
    return this.#watch(bookmark(this.#version, true), seconds, signal);
  }

  #refuse(): FleetAnswer {
    this.counts.refused++;
    return answer(429, { "retry-after": "1" });
  }

  #watch(first: string, seconds: number, signal: AbortSignal): FleetAnswer {
    let end = () => {};
    const broken = new Promise<"broken">((resolve) => {
      end = () => resolve("broken");
    });
    this.#open.add(end);
    signal.addEventListener("abort", end, { once: true });
    return { ...answer(200), body: this.#events(first, seconds, { broken, end, signal }) };
  }

  async *#events(
    first: string,
    seconds: number,
    { broken, end, signal }: { broken: Promise<"broken">; end: () => void; signal: AbortSignal },
  ): AsyncGenerator<Uint8Array, void, void> {
    const over = this.#clock.monotonic() + seconds * 1000;
    try {
      if (first !== "") yield Buffer.from(first);
      for (let left = seconds * 1000; left > 0; left = over - this.#clock.monotonic()) {
        if ((await Promise.race([this.#pause(Math.min(left, BOOKMARK_EVERY), broken), broken])) === "broken") {
          if (signal.aborted) return;
          throw new Error("read ECONNRESET");
        }
        this.counts.bookmarks++;
        yield Buffer.from(bookmark(this.#version));
      }
    } finally {
      this.#open.delete(end);
      signal.removeEventListener("abort", end);
    }
  }

  #pause(milliseconds: number, broken: Promise<unknown>): Promise<"over"> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(milliseconds, () => resolve("over"));
      void broken.then(cancel);
    });
  }
}

/** `list`: a watch that begins with all objects. `sign`: whether the server is alive. */
type FleetKind = "list" | "watch" | "sign";

/** What a fleet asked of its server since the counting began. */
export class FleetCounts {
  readonly requests: Record<FleetKind, number> = { list: 0, watch: 0, sign: 0 };
  /** Attempts that found no server. */
  unanswered = 0;
  /** Lists that were asked to come later. */
  refused = 0;
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

/** Numbers from 0 to below 1 by a generator with a seed: what a simulation shows does not depend on luck. */
export function seeded(): () => number {
  let state = 1;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function kindOf(path: string): FleetKind {
  if (path === "/version") return "sign";
  return path.includes("sendInitialEvents") ? "list" : "watch";
}

/** @param endsList whether it ends the objects of a list */
function bookmark(version: number, endsList = false): string {
  const annotations = endsList ? { "k8s.io/initial-events-end": "true" } : {};
  const metadata = { resourceVersion: String(version), annotations };
  return `${JSON.stringify({ type: "BOOKMARK", object: { kind: "Service", apiVersion: "v1", metadata } })}\n`;
}

/** An empty object. */
function answer(status: number, headers: Readonly<Record<string, string>> = {}): FleetAnswer {
  return {
    status,
    header: (name) => headers[name],
    body: (async function* () {
      yield Buffer.from("{}");
    })(),
  };
}

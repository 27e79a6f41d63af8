import type { VirtualClock } from "@fairlead/base/testing";
import { answer, bookmark } from "./answers.ts";
import { FleetCounts, kindOf } from "./counts.ts";
import type { FleetAnswer, FleetRequest } from "./transport.ts";

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

  /** Watches that are open. */
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

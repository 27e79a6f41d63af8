import type { VirtualClock } from "@fairlead/base/testing";
import type { ApiRequest, ApiResponse, Transport } from "../../src/api/transport.ts";

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
  /** Requests of each second that has some. */
  readonly seconds = new Map<number, number>();
  requests = 0;
  refused = 0;
  lists = 0;

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

  readonly transport: Transport = async ({ path, signal }: ApiRequest) => {
    if (!this.up) throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
    const url = new URL(path, "http://api");
    if (url.pathname === "/version") return answer(200, "{}");
    this.#count();
    if (url.searchParams.has("sendInitialEvents")) return this.#list(signal);
    if (Number(url.searchParams.get("resourceVersion")) < this.#oldest) return answer(410, "{}");
    return this.#watch("", signal);
  };

  async #list(signal: AbortSignal): Promise<ApiResponse> {
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
    this.lists++;
    return this.#watch(endOfList(this.#version), signal);
  }

  #refuse(): ApiResponse {
    this.refused++;
    return answer(429, "{}", { "retry-after": "1" });
  }

  #watch(first: string, signal: AbortSignal): ApiResponse {
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.#open.add(end);
    signal.addEventListener("abort", end, { once: true });
    const open = this.#open;
    return {
      status: 200,
      header: () => undefined,
      body: (async function* () {
        try {
          if (first !== "") yield Buffer.from(first);
          await ended;
          if (!signal.aborted) throw new Error("read ECONNRESET");
        } finally {
          open.delete(end);
        }
      })(),
    };
  }

  #count(): void {
    this.requests++;
    const second = Math.floor(this.#clock.monotonic() / 1000);
    this.seconds.set(second, (this.seconds.get(second) ?? 0) + 1);
  }
}

function endOfList(version: number): string {
  const annotations = { "k8s.io/initial-events-end": "true" };
  const metadata = { resourceVersion: String(version), annotations };
  return `${JSON.stringify({ type: "BOOKMARK", object: { kind: "Service", apiVersion: "v1", metadata } })}\n`;
}

function answer(status: number, text: string, headers: Readonly<Record<string, string>> = {}): ApiResponse {
  return {
    status,
    header: (name) => headers[name],
    body: (async function* () {
      yield Buffer.from(text);
    })(),
  };
}

/** The stream of events to the open pages. */

import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { StreamEvent } from "./protocol.ts";

interface Numbered {
  readonly id: number;
  readonly text: string;
}

/** Deltas that are kept for clients that come back. */
const KEPT = 1_000;
/** A page that takes nothing for so many deltas begins anew. */
const MOST_WAITING = 5_000;

interface StreamOptions {
  /** The full state, for a new page: event by event, so that others get their turn between. */
  readonly everything: (stream: string) => AsyncIterable<StreamEvent>;
  readonly onGone: (stream: string) => void;
}

/** Server-sent events with numbers: a client that is back with its last number is given what it missed. */
export class Stream {
  readonly #options: StreamOptions;
  readonly #kept: Numbered[] = [];
  readonly #readers = new Map<string, Reader>();
  #last = 0;
  #names = 0;

  constructor(options: StreamOptions) {
    this.#options = options;
  }

  publish(event: StreamEvent): void {
    const delta = { id: ++this.#last, text: eventText(event) };
    this.#kept.push(delta);
    if (this.#kept.length > KEPT) this.#kept.shift();
    for (const reader of this.#readers.values()) reader.take(delta);
  }

  has(name: string): boolean {
    return this.#readers.has(name);
  }

  /**
   * Serves one reader until it goes.
   *
   * @param lastId the header Last-Event-ID
   */
  async serve(response: ServerResponse, lastId: string | undefined): Promise<void> {
    const name = String(++this.#names);
    const reader = new Reader(response);
    const missed = this.#since(lastId);
    this.#readers.set(name, reader);
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    response.on("close", () => {
      this.#readers.delete(name);
      this.#options.onGone(name);
    });
    const at = this.#last;
    if (missed === undefined)
      for await (const event of this.#options.everything(name)) await reader.write(eventText(event));
    // Only now: a client that is cut off before has to begin anew.
    await reader.write(`id: ${at}\nevent: whole\ndata: ${JSON.stringify({ stream: name })}\n\n`);
    for (const delta of missed ?? []) reader.take(delta);
    await reader.run();
  }

  /** @returns undefined: everything has to be given */
  #since(lastId: string | undefined): readonly Numbered[] | undefined {
    const last = Number(lastId ?? "none");
    if (!Number.isInteger(last) || last > this.#last || last < this.#last - this.#kept.length) return undefined;
    return this.#kept.filter(({ id }) => id > last);
  }
}

/** One page that reads: what it cannot take yet waits. */
class Reader {
  readonly #response: ServerResponse;
  readonly #waiting: Numbered[] = [];
  readonly #gone = new AbortController();
  #wake = () => {};

  constructor(response: ServerResponse) {
    this.#response = response;
    response.on("close", () => {
      this.#gone.abort();
      this.#wake();
    });
  }

  take(delta: Numbered): void {
    this.#waiting.push(delta);
    if (this.#waiting.length > MOST_WAITING) this.#response.destroy();
    this.#wake();
  }

  async write(text: string): Promise<void> {
    if (this.#response.destroyed || this.#response.write(text)) return;
    // It rejects when the reader goes, which ends `run`.
    await once(this.#response, "drain", { signal: this.#gone.signal }).catch(() => undefined);
  }

  async run(): Promise<void> {
    while (!this.#gone.signal.aborted) {
      for (const { id, text } of this.#waiting.splice(0)) await this.write(`id: ${id}\n${text}`);
      if (this.#waiting.length > 0 || this.#gone.signal.aborted) continue;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
    }
  }
}

function eventText({ name, data }: StreamEvent): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

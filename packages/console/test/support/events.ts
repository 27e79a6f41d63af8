import { get, type IncomingMessage } from "node:http";
import { type FollowedStream, follow } from "@fairlead/base/testing";
import { testSignal } from "@fairlead/tooling/test-signal";

export interface SentEvent {
  readonly id?: number;
  readonly name: string;
  readonly data: Record<string, unknown>;
}

/** Reads a stream of server-sent events as a page does. */
export class Events implements AsyncDisposable {
  readonly #events: FollowedStream<SentEvent>;
  /** How many have been given. */
  #given = 0;

  constructor(response: IncomingMessage) {
    this.#events = follow(testSignal(), (stop) => {
      stop.addEventListener("abort", () => response.destroy(), { once: true });
      return eventsIn(response);
    });
  }

  static open(base: string, headers: Record<string, string>): Promise<Events> {
    return new Promise((resolve, reject) => {
      get(`${base}events`, { headers, agent: false }, (response) => resolve(new Events(response))).on("error", reject);
    });
  }

  /** The next events, up to and with the one that is asked for. */
  async until(wanted: (event: SentEvent) => boolean): Promise<readonly SentEvent[]> {
    const next = await this.#events.until((all) => {
      const left = all.slice(this.#given);
      const at = left.findIndex(wanted);
      return at >= 0 && left.slice(0, at + 1);
    }, String(wanted));
    this.#given += next.length;
    return next;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#events[Symbol.asyncDispose]();
  }
}

async function* eventsIn(response: IncomingMessage): AsyncGenerator<SentEvent, void, void> {
  let text = "";
  for await (const piece of response.setEncoding("utf8")) {
    text += piece;
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    yield* blocks.map(eventIn);
  }
}

function eventIn(block: string): SentEvent {
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1];
  const id = field("id");
  return {
    ...(id !== undefined && { id: Number(id) }),
    name: field("event") ?? "",
    data: JSON.parse(field("data") ?? ""),
  };
}

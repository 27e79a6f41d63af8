import { get, type IncomingMessage } from "node:http";

export interface SentEvent {
  readonly id?: number;
  readonly name: string;
  readonly data: Record<string, unknown>;
}

/** Reads a stream of server-sent events as a page does. */
export class Events implements Disposable {
  readonly #response: IncomingMessage;
  readonly #events: AsyncGenerator<SentEvent, void, void>;

  constructor(response: IncomingMessage) {
    this.#response = response;
    this.#events = eventsIn(response);
  }

  static open(base: string, headers: Record<string, string>): Promise<Events> {
    return new Promise((resolve, reject) => {
      get(`${base}events`, { headers, agent: false }, (response) => resolve(new Events(response))).on("error", reject);
    });
  }

  /** The next events, up to and with the one that is asked for. */
  async until(wanted: (event: SentEvent) => boolean): Promise<readonly SentEvent[]> {
    const seen: SentEvent[] = [];
    for (;;) {
      const { value, done } = await this.#events.next();
      if (done === true || value === undefined) throw new Error("the stream ended");
      seen.push(value);
      if (wanted(value)) return seen;
    }
  }

  [Symbol.dispose](): void {
    this.#response.destroy();
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

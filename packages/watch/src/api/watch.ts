import { breather } from "../breathe.ts";
import { type BookmarkEvent, type ObjectEvent, parseEvent } from "./events.ts";
import { lineSplitter } from "./lines.ts";

export interface EventSink {
  object(event: ObjectEvent): Promise<void>;
  bookmark(event: BookmarkEvent): Promise<void>;
}

/**
 * Reads a watch to its end, one event after the other.
 *
 * @throws ApiError an ERROR event; ProtocolError; BrokenResponseError
 */
export async function readEvents(chunks: AsyncIterable<Uint8Array>, sink: EventSink): Promise<void> {
  const split = lineSplitter();
  const breathe = breather();
  for await (const chunk of chunks) {
    for (const line of split(chunk)) {
      const event = parseEvent(line);
      if (event.type === "ERROR") throw event.error;
      await (event.type === "BOOKMARK" ? sink.bookmark(event) : sink.object(event));
      await breathe();
    }
  }
}

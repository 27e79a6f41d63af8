import { slices } from "@fairlead/base";
import { isTooDeep } from "../json/depth.ts";
import { beginningBytes, maxDepth } from "../limits.ts";
import { type BookmarkEvent, type ObjectEvent, parseEvent } from "./events.ts";
import { type Identity, identityIn } from "./identity.ts";
import { lineSplitter } from "./lines.ts";

export interface EventSink {
  object(event: ObjectEvent): Promise<void>;
  bookmark(event: BookmarkEvent): Promise<void>;
  /** An event that is too large or too deeply nested to be read was passed over. */
  tooMuch(of: Identity, why: string): void;
}

/** Whatever a shorter line holds costs little memory. */
const looksHarmless = 64 * 1024;

/**
 * Reads a watch to its end, one event after the other.
 *
 * @throws ApiError an ERROR event; ProtocolError; BrokenResponseError
 */
export async function readEvents(chunks: AsyncIterable<Uint8Array>, sink: EventSink): Promise<void> {
  const split = lineSplitter();
  const yielding = slices();
  for await (const chunk of chunks) {
    for (const { text, tooMuch = whyTooDeep(text) } of split(chunk)) {
      if (tooMuch !== undefined) {
        await passOver(text.slice(0, beginningBytes), tooMuch, sink);
        continue;
      }
      const event = parseEvent(text);
      if (event.type === "ERROR") throw event.error;
      await (event.type === "BOOKMARK" ? sink.bookmark(event) : sink.object(event));
      await yielding();
    }
    await yielding();
  }
}

async function passOver(beginning: string, why: string, sink: EventSink): Promise<void> {
  const { key, version } = identityIn(beginning);
  const gone = key !== undefined && version !== undefined && beginning.startsWith('{"type":"DELETED"');
  if (gone) await sink.object({ type: "DELETED", key, version, object: {} });
  else sink.tooMuch({ key, version }, why);
}

function whyTooDeep(line: string): string | undefined {
  return line.length > looksHarmless && isTooDeep(line) ? `nested deeper than ${maxDepth} levels` : undefined;
}

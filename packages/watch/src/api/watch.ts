import { isTooDeep, slices } from "@fairlead/base";
import { BEGINNING_BYTES, MAX_DEPTH } from "../limits.ts";
import { type BookmarkEvent, type ObjectEvent, parseEvent, type WatchEvent } from "./events.ts";
import { type Identity, identityIn } from "./identity.ts";
import { lineSplitter } from "./lines.ts";

export interface EventSink {
  object(event: ObjectEvent): Promise<void>;
  bookmark(event: BookmarkEvent): Promise<void>;
  /** An event that can't be read, being too large or too deeply nested, say, was passed over. */
  tooMuch(of: Identity, why: string): void;
}

/** An event that was passed over, and what its beginning says of it. */
export interface UnreadableEvent {
  readonly type: "unreadable";
  readonly of: Identity;
  readonly deleted: boolean;
  readonly why: string;
}

/** Gives the events that a chunk of a watch completes. @throws ProtocolError */
export type CutEvents = (chunk: Uint8Array) => Iterable<WatchEvent | UnreadableEvent>;

/** Whatever a shorter line holds costs little memory. */
const LOOKS_HARMLESS = 64 * 1024;

/**
 * Reads a watch to its end, one event after the other.
 *
 * @throws ApiError an ERROR event; ProtocolError; BrokenResponseError
 */
export async function readEvents(
  chunks: AsyncIterable<Uint8Array>,
  sink: EventSink,
  cut: CutEvents = jsonEvents(),
): Promise<void> {
  const yielding = slices();
  for await (const chunk of chunks) {
    for (const event of cut(chunk)) {
      if (event.type === "ERROR") throw event.error;
      if (event.type === "unreadable") await passOver(event, sink);
      else await (event.type === "BOOKMARK" ? sink.bookmark(event) : sink.object(event));
      await yielding();
    }
    await yielding();
  }
}

async function passOver({ of, deleted, why }: UnreadableEvent, sink: EventSink): Promise<void> {
  const { key, version } = of;
  const gone = deleted && key !== undefined && version !== undefined;
  if (gone) await sink.object({ type: "DELETED", key, version, object: {} });
  else sink.tooMuch(of, why);
}

/** Events as lines of JSON. */
export function jsonEvents(): CutEvents {
  const split = lineSplitter();
  return function* (chunk) {
    for (const { text, tooMuch = whyTooDeep(text) } of split(chunk)) {
      if (tooMuch === undefined) yield parseEvent(text);
      else yield unreadable(text.slice(0, BEGINNING_BYTES), tooMuch);
    }
  };
}

function unreadable(beginning: string, why: string): UnreadableEvent {
  const deleted = beginning.startsWith('{"type":"DELETED"');
  return { type: "unreadable", of: identityIn(beginning), deleted, why };
}

function whyTooDeep(line: string): string | undefined {
  return line.length > LOOKS_HARMLESS && isTooDeep(line, MAX_DEPTH)
    ? `nested deeper than ${MAX_DEPTH} levels`
    : undefined;
}

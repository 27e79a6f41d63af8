/** The events of a watch as they come in, in JSON and in protobuf. */

import { errorText, isObject, isTooDeep, objectAt, type RawObject, slices, textAt, valueAt } from "@fairlead/base";
import type { ObjectKey } from "../change.ts";
import { Gathered } from "../json-splitter.ts";
import { BEGINNING_BYTES, MAX_DEPTH, MAX_OBJECT_BYTES, mebibytes } from "../limits.ts";
import { status, watchEvent } from "../protobuf-kinds.ts";
import { bytesAt, readMessage, unwrap } from "../protobuf-messages.ts";
import { FrameSplitter } from "../protobuf-splitters.ts";
import { objectKeyOf, resourceVersionOf } from "../resources.ts";
import { type ApiError, asProtocol, errorOfEvent, ProtocolError } from "./errors.ts";
import { eventIn, type Identity, identityIn, type ProtobufKind } from "./lists.ts";

const NOT_PROTOBUF = "the watch is not protobuf";

interface ErrorEvent {
  readonly type: "ERROR";
  readonly error: ApiError;
}

type WatchEvent = ObjectEvent | BookmarkEvent | ErrorEvent;

/** An event that was passed over, and what its beginning says of it. */
interface UnreadableEvent {
  readonly type: "unreadable";
  readonly of: Identity;
  readonly deleted: boolean;
  readonly why: string;
}

/** Gives the events that a chunk of a watch completes. @throws ProtocolError */
export type CutEvents = (chunk: Uint8Array) => Iterable<WatchEvent | UnreadableEvent>;

interface EventSink {
  object(event: ObjectEvent): Promise<void>;
  bookmark(event: BookmarkEvent): Promise<void>;
  /** An event that can't be read, being too large or too deeply nested, say, was passed over. */
  tooMuch(of: Identity, why: string): void;
}

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

export interface ObjectEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  /** undefined: the object has no usable name. */
  readonly key: ObjectKey | undefined;
  readonly version: string;
  readonly object: RawObject;
}

export interface BookmarkEvent {
  readonly type: "BOOKMARK";
  readonly version: string;
  /** KEP-3157: all objects that exist have been sent. */
  readonly endsInitialEvents: boolean;
}

interface Line {
  /** UTF-8 without the line's end; only its beginning where `tooMuch` says why. */
  readonly text: string;
  readonly tooMuch: string | undefined;
}

const NEWLINE = 0x0a;

/**
 * Cuts a stream into lines, each chunk looked at once. A line that has not ended is kept for the next chunk; what is
 * left at the end of the stream is not a line.
 *
 * @returns the lines that the chunk completes, without line ends and empty ones
 */
export function lineSplitter(limit = MAX_OBJECT_BYTES): (chunk: Uint8Array) => Generator<Line> {
  const line = new Gathered();
  const add = (part: Uint8Array) => {
    line.add(part);
    if (line.size > limit) line.drop(`larger than ${mebibytes(limit)}`);
  };
  const take = (): Line => {
    const { dropped: tooMuch } = line;
    return { tooMuch, text: utf8(line.take()).trimEnd() };
  };
  return function* (chunk) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      add(chunk.subarray(start, end));
      start = end + 1;
      const found = take();
      if (found.text !== "") yield found;
    }
    add(chunk.subarray(start));
  };
}

/** Events as frames; an object that can't be read is passed over by itself. */
export function protobufEvents(of: ProtobufKind): CutEvents {
  const splitter = new FrameSplitter();
  return function* (chunk) {
    for (const { bytes, tooMuch } of asProtocol(NOT_PROTOBUF, () => splitter.write(chunk))) {
      yield tooMuch === undefined ? readEvent(bytes, of) : unreadableProtobuf(bytes, tooMuch);
    }
  };
}

/** Whatever a shorter line holds costs little memory. */
const LOOKS_HARMLESS = 64 * 1024;

async function passOver({ of, deleted, why }: UnreadableEvent, sink: EventSink): Promise<void> {
  const { key, version } = of;
  const gone = deleted && key !== undefined && version !== undefined;
  if (gone) await sink.object({ type: "DELETED", key, version, object: {} });
  else sink.tooMuch(of, why);
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

/** One line of a watch (metav1.WatchEvent). */
function parseEvent(line: string): WatchEvent {
  const raw = parseLine(line);
  return eventOf(valueAt(raw, "type"), valueAt(raw, "object"), () => beginning(line));
}

function eventOf(type: unknown, object: unknown, text: () => string): WatchEvent {
  if (type === "ERROR") return { type, error: errorOfEvent(object) };
  if (!isObject(object)) throw new ProtocolError(`a watch event without an object: ${text()}`);
  const version = resourceVersionOf(object);
  if (version === undefined) throw new ProtocolError(`a watch event without a resourceVersion: ${text()}`);
  switch (type) {
    case "ADDED":
    case "MODIFIED":
    case "DELETED":
      return { type, key: objectKeyOf(object), version, object };
    case "BOOKMARK":
      return { type, version, endsInitialEvents: endsInitialEvents(object) };
    default:
      throw new ProtocolError(`a watch event of unknown type: ${text()}`);
  }
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw new ProtocolError(`a line of the watch is not JSON: ${beginning(line)}`);
  }
}

function endsInitialEvents(bookmark: RawObject): boolean {
  const annotations = objectAt(objectAt(bookmark, "metadata"), "annotations");
  return valueAt(annotations, "k8s.io/initial-events-end") === "true";
}

function beginning(line: string): string {
  return JSON.stringify(line.slice(0, 80));
}

function utf8(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8");
}

function readEvent(bytes: Uint8Array, of: ProtobufKind): WatchEvent | UnreadableEvent {
  const event = asProtocol(NOT_PROTOBUF, () => readMessage(bytes, watchEvent));
  const type = textAt(event, "type");
  const wrapped = asProtocol(NOT_PROTOBUF, () => unwrap(bytesAt(valueAt(event, "object"), "raw")));
  const definition = definitionOf(wrapped.kind, of);
  let object: unknown;
  try {
    object = readMessage(wrapped.bytes, definition);
  } catch (error) {
    return unreadableProtobuf(bytes, errorText(error));
  }
  return eventOf(type, object, () => `${type} of a ${of.kind}`);
}

/** @throws ProtocolError */
function definitionOf(kind: string, of: ProtobufKind) {
  if (kind === of.kind) return of.definition;
  if (kind === "Status") return status;
  throw new ProtocolError(`the watch is not of kind ${of.kind}: ${JSON.stringify(kind)}`);
}

function unreadableProtobuf(bytes: Uint8Array, why: string): UnreadableEvent {
  const { type, ...of } = eventIn(bytes);
  return { type: "unreadable", of, deleted: type === "DELETED", why };
}

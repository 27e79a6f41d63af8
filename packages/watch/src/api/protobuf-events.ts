import { errorText, textAt, valueAt } from "@fairlead/base";
import { FrameSplitter } from "../protobuf/frames.ts";
import { status } from "../protobuf/kinds/metadata.ts";
import { watchEvent } from "../protobuf/kinds/wrappers.ts";
import { readMessage } from "../protobuf/read-message.ts";
import { bytesAt, unwrap } from "../protobuf/wrapped.ts";
import { ProtocolError } from "./errors.ts";
import { eventOf, type WatchEvent } from "./events.ts";
import { eventIn } from "./protobuf-identity.ts";
import type { ProtobufKind } from "./protobuf-list-parser.ts";
import type { CutEvents, UnreadableEvent } from "./watch.ts";

/** Events as frames; an object that can't be read is passed over by itself. */
export function protobufEvents(of: ProtobufKind): CutEvents {
  const splitter = new FrameSplitter();
  return function* (chunk) {
    for (const { bytes, tooMuch } of asProtocol(() => splitter.write(chunk))) {
      yield tooMuch === undefined ? readEvent(bytes, of) : unreadable(bytes, tooMuch);
    }
  };
}

function readEvent(bytes: Uint8Array, of: ProtobufKind): WatchEvent | UnreadableEvent {
  const event = asProtocol(() => readMessage(bytes, watchEvent));
  const type = textAt(event, "type");
  const wrapped = asProtocol(() => unwrap(bytesAt(valueAt(event, "object"), "raw")));
  const definition = definitionOf(wrapped.kind, of);
  let object: unknown;
  try {
    object = readMessage(wrapped.bytes, definition);
  } catch (error) {
    return unreadable(bytes, errorText(error));
  }
  return eventOf(type, object, () => `${type} of a ${of.kind}`);
}

/** @throws ProtocolError */
function definitionOf(kind: string, of: ProtobufKind) {
  if (kind === of.kind) return of.definition;
  if (kind === "Status") return status;
  throw new ProtocolError(`the watch is not of kind ${of.kind}: ${JSON.stringify(kind)}`);
}

function unreadable(bytes: Uint8Array, why: string): UnreadableEvent {
  const { type, ...of } = eventIn(bytes);
  return { type: "unreadable", of, deleted: type === "DELETED", why };
}

/** @throws ProtocolError instead of MalformedError */
function asProtocol<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new ProtocolError(`the watch is not protobuf: ${errorText(error)}`);
  }
}

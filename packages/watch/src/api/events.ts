import { isObject, objectAt, type RawObject, valueAt } from "@fairlead/base";
import type { ObjectKey } from "../change.ts";
import { objectKeyOf, resourceVersionOf } from "../raw.ts";
import { type ApiError, errorOfEvent, ProtocolError } from "./errors.ts";

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

interface ErrorEvent {
  readonly type: "ERROR";
  readonly error: ApiError;
}

export type WatchEvent = ObjectEvent | BookmarkEvent | ErrorEvent;

/**
 * One line of a watch (metav1.WatchEvent).
 *
 * @throws ProtocolError
 */
export function parseEvent(line: string): WatchEvent {
  const raw = parseLine(line);
  return eventOf(valueAt(raw, "type"), valueAt(raw, "object"), () => beginning(line));
}

/**
 * @param text the event for an error's message
 * @throws ProtocolError
 */
export function eventOf(type: unknown, object: unknown, text: () => string): WatchEvent {
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

import {
  CLOSE_LIST,
  COLON,
  endOfValue,
  isAt,
  NOWHERE,
  OPEN_LIST,
  OPEN_OBJECT,
  QUOTE,
  type ScanSink,
  skipBlanks,
} from "./json-scan.ts";

/** The objects of a JSON text that is an array or a list (`{"kind": "List", "items": […]}`), uncut and unread. */
export interface JsonItems {
  /** Where each object begins, ascending. */
  readonly starts: readonly number[];
  /** After the end of each. */
  readonly ends: readonly number[];
  /** After the bracket that opens their list. */
  readonly from: number;
  /** The bracket that closes it. */
  readonly to: number;
}

/**
 * Finds where the objects stand without reading them, which takes a tenth of the time.
 *
 * @returns undefined: it is no array or list of objects, or no JSON. Not every mistake in an object is seen.
 */
export function jsonItems(bytes: Uint8Array, sink: ScanSink): JsonItems | undefined {
  const from = listIn(bytes);
  if (from === undefined) return undefined;
  const [starts, ends]: [number[], number[]] = [[], []];
  let at = skipBlanks(bytes, from);
  for (; bytes[at] === OPEN_OBJECT; at = skipBlanks(bytes, at, true)) {
    starts.push(at);
    at = endOfValue(bytes, at, sink);
    if (at === NOWHERE) return undefined;
    ends.push(at);
  }
  return bytes[at] === CLOSE_LIST && isJson(chosenText(bytes, { starts, ends, from, to: at }, []))
    ? { starts, ends, from, to: at }
    : undefined;
}

/** The text with these of its objects only, by their place in `starts`. */
export function chosenText(
  bytes: Uint8Array,
  { starts, ends, from, to }: JsonItems,
  chosen: Iterable<number>,
): Uint8Array {
  const objects = [...chosen].flatMap((place, index) => [
    ...(index === 0 ? [] : [SEPARATOR]),
    bytes.subarray(starts[place], ends[place]),
  ]);
  return Buffer.concat([bytes.subarray(0, from), ...objects, bytes.subarray(to)]);
}

const SEPARATOR = Buffer.from(",");
const ITEMS = Buffer.from('"items"');
const SILENT: ScanSink = { string: () => {}, unusual: () => {} };

/** After the bracket that opens the list of objects. */
function listIn(bytes: Uint8Array): number | undefined {
  const start = skipBlanks(bytes, 0);
  if (bytes[start] === OPEN_LIST) return start + 1;
  if (bytes[start] !== OPEN_OBJECT) return undefined;
  for (let at = skipBlanks(bytes, start + 1); bytes[at] === QUOTE; at = skipBlanks(bytes, at, true)) {
    const value = afterKey(bytes, at);
    if (value === undefined) return undefined;
    if (isAt(bytes, at, ITEMS) && bytes[value] === OPEN_LIST) return value + 1;
    at = endOfValue(bytes, value, SILENT);
  }
  return undefined;
}

/** The first character of the value of the property whose key stands there. */
export function afterKey(bytes: Uint8Array, key: number): number | undefined {
  const colon = skipBlanks(bytes, endOfValue(bytes, key, SILENT));
  return bytes[colon] === COLON ? skipBlanks(bytes, colon + 1) : undefined;
}

/** What stands around the objects is short, and is read. */
function isJson(bytes: Uint8Array): boolean {
  try {
    JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    return true;
  } catch {
    return false;
  }
}

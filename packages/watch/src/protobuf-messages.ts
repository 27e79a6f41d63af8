/** Reads protobuf messages of the Kubernetes API into the objects that the same content in JSON would give. */

import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { errorText, isObject, objectAt, type RawObject, textAt, valueAt } from "@fairlead/base";
import { MAX_PARTS } from "./limits.ts";
import { type Field, type Message, status, unknown } from "./protobuf-kinds.ts";

/** The bytes are not what the message's definition says, or too much to be read. */
export class MalformedError extends Error {
  override readonly name = "MalformedError";
}

/**
 * One message as the object that its JSON would be parsed to, as far as the definition goes. Bytes become views.
 *
 * @throws MalformedError also for text that is no UTF-8, and for more than `maxParts` fields
 */
export function readMessage(bytes: Uint8Array, definition: Message): RawObject {
  try {
    const { buffer, byteOffset, length } = bytes;
    const reading = { reader: new BinaryReader(bytes), bytes: Buffer.from(buffer, byteOffset, length), parts: 0 };
    return readFields(reading, length, definition);
  } catch (error) {
    throw error instanceof MalformedError ? error : new MalformedError(errorText(error));
  }
}

/** What every object in protobuf begins with: `k8s` and a zero byte (apimachinery's serializer/protobuf). */
export const magic = new Uint8Array([0x6b, 0x38, 0x73, 0x00]);

/** An object as it stands in its runtime.Unknown. */
interface Wrapped {
  readonly kind: string;
  readonly bytes: Uint8Array;
}

/** @throws MalformedError */
export function unwrap(bytes: Uint8Array): Wrapped {
  if (!beginsWithMagic(bytes)) throw new MalformedError("the magic number is missing");
  const wrapper = readMessage(bytes.subarray(magic.length), unknown);
  const encoding = textAt(wrapper, "contentEncoding");
  if (encoding !== undefined) throw unknownEncoding(encoding);
  return { kind: textAt(objectAt(wrapper, "typeMeta"), "kind") ?? "", bytes: bytesAt(wrapper, "raw") };
}

/** @param length of what has come of it */
export function beginsWithMagic(bytes: Uint8Array, length = magic.length): boolean {
  return magic.subarray(0, length).every((byte, i) => bytes[i] === byte);
}

/** The API has the field; no server uses it. */
export function unknownEncoding(encoding: string): MalformedError {
  return new MalformedError(`unknown contentEncoding ${JSON.stringify(encoding)}`);
}

export function bytesAt(message: unknown, name: string): Uint8Array {
  const value = valueAt(message, name);
  return value instanceof Uint8Array ? value : nothing;
}

/** The Status that an answer is. @throws MalformedError when it is not a Status */
export function readStatus(bytes: Uint8Array): RawObject {
  return readMessage(unwrap(bytes).bytes, status);
}

/** Kubernetes' own encoding of its own kinds; custom resources have none. */
export const PROTOBUF_TYPE = "application/vnd.kubernetes.protobuf";
export const JSON_TYPE = "application/json";

/** @param contentType the header's value, parameters and all */
export function isProtobuf(contentType: string | undefined): boolean {
  return contentType?.split(";", 1)[0]?.trim().toLowerCase() === PROTOBUF_TYPE;
}

interface Reading {
  readonly reader: BinaryReader;
  readonly bytes: Buffer;
  /** Fields so far, those in messages included. */
  parts: number;
}

/** A start reads a hundred thousand fields with code that is not optimized yet: few calls for each. */
function readFields(reading: Reading, end: number, definition: Message): RawObject {
  const { reader, bytes } = reading;
  const object: RawObject = {};
  while (reader.pos < end) {
    if (++reading.parts > MAX_PARTS) throw new MalformedError(`more than ${MAX_PARTS} fields`);
    // Nearly every tag is one byte.
    const byte = bytes[reader.pos] ?? 0;
    const tag = byte < 0x80 ? byte : reader.uint32();
    if (byte < 0x80) reader.pos++;
    const found = definition[tag >>> 3];
    if (found !== undefined) readField(reading, found, tag & 7, object);
    else if (tag >>> 3 === 0) throw new MalformedError("a field without a number");
    else skip(reader, tag);
  }
  if (reader.pos > end) throw new MalformedError("a field is longer than its message");
  return object;
}

/** The library would make a view of what is passed over. */
function skip(reader: BinaryReader, tag: number): void {
  if ((tag & 7) !== WireType.LengthDelimited) return void reader.skip(tag & 7, tag >>> 3);
  const length = reader.uint32();
  reader.pos += length;
}

function readField(reading: Reading, { name, type, many, omitEmpty }: Field, wireType: number, into: RawObject): void {
  const wanted = type === "int32" || type === "bool" ? WireType.Varint : WireType.LengthDelimited;
  if (wireType !== wanted) throw new MalformedError(`${name} has wire type ${wireType} in place of ${wanted}`);
  const value = readValue(reading, type);
  if (many === "list") addItem(into, name, value);
  else if (many === "map") addEntry(into, name, value);
  else if (!omitEmpty || (value !== "" && value !== 0 && value !== false)) into[name] = value;
}

function readValue(reading: Reading, type: Field["type"]): unknown {
  const { reader } = reading;
  switch (type) {
    case "string":
      return readText(reading);
    case "int32":
      return reader.int32();
    case "bool":
      return reader.bool();
    case "bytes":
      return reader.bytes();
    case "time":
      return readTime(reader.bytes());
    default:
      return readFields(reading, reader.uint32() + reader.pos, type);
  }
}

const strictly = new TextDecoder("utf-8", { fatal: true });

/** Native code reads text fastest, and puts U+FFFD where it is no UTF-8: then it is read once more. */
function readText({ reader, bytes }: Reading): string {
  const length = reader.uint32();
  const start = reader.pos;
  reader.pos += length;
  if (reader.pos > bytes.length) throw new MalformedError("a text is longer than its message");
  const text = bytes.toString("utf8", start, reader.pos);
  return text.includes("\ufffd") ? strictly.decode(bytes.subarray(start, reader.pos)) : text;
}

function addItem(into: RawObject, name: string, item: unknown): void {
  const items = into[name];
  if (Array.isArray(items)) items.push(item);
  else into[name] = [item];
}

function addEntry(into: RawObject, name: string, entry: unknown): void {
  const key = textAt(entry, "key") ?? "";
  const value = textAt(entry, "value") ?? "";
  const known = into[name];
  const entries = isObject(known) ? known : {};
  // As JSON.parse does it: the name of the prototype is a name as any other.
  if (key === "__proto__") Object.defineProperty(entries, key, { value, ...PLAIN });
  else entries[key] = value;
  into[name] = entries;
}

const PLAIN = { configurable: true, enumerable: true, writable: true };

/**
 * metav1.Time as its JSON is written: RFC 3339 in whole seconds, UTC; null for an empty one, Go's zero time
 * (apimachinery, meta/v1/time_proto.go).
 */
function readTime(bytes: Uint8Array): string | null {
  if (bytes.length === 0) return null;
  const reader = new BinaryReader(bytes);
  let seconds = 0;
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag === SECONDS_TAG) seconds = Number(reader.int64());
    else reader.skip(tag & 7, tag >>> 3);
  }
  const time = new Date(seconds * 1000);
  if (Number.isNaN(time.getTime())) throw new MalformedError("a time out of range");
  return time.toISOString().replace(".000Z", "Z");
}

/** Field 1, a varint. */
const SECONDS_TAG = 8;

const nothing = new Uint8Array(0);

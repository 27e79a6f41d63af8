/** Lists of objects as they come in, in JSON and in protobuf. */

import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { errorText, objectAt, type RawObject, textAt } from "@fairlead/base";
import type { ObjectKey } from "../change.ts";
import { JsonSplitter } from "../json-splitter.ts";
import { listMeta, type Message, typeMeta } from "../protobuf-kinds.ts";
import { beginsWithMagic, MalformedError, magic, readMessage, unknownEncoding } from "../protobuf-messages.ts";
import { type CutField, FieldSplitter, type Use } from "../protobuf-splitters.ts";
import { asProtocol, BrokenResponseError, ProtocolError } from "./errors.ts";

const [NOT_JSON, NOT_PROTOBUF] = ["the list is not JSON", "the list is not protobuf"];

/** What a list says of itself besides its items. */
export interface ListHead {
  readonly resourceVersion: string;
  /** Token of the next page; undefined: this was all. */
  readonly next: string | undefined;
}

/** An item as read, or why it was passed over and what its beginning says that it is. */
export type ListItem = { readonly raw: unknown } | { readonly unreadable: string; readonly identity: Identity };

export interface ListParser {
  /** @returns the items that the chunk completes. @throws ProtocolError not what the API speaks */
  write(chunk: Uint8Array): Iterable<ListItem>;
  /** @throws BrokenResponseError the text has not ended. @throws ProtocolError it is no list */
  end(): ListHead;
}

/**
 * Reads a JSON list of any size item by item; never holds more of it than one chunk's items and one that has not ended.
 */
export function listParser(): ListParser {
  const splitter = new JsonSplitter();
  // Bytes that are no UTF-8 would have become others' names.
  const decoder = new TextDecoder("utf-8", { fatal: true });
  return {
    write: (chunk) =>
      asProtocol(NOT_JSON, () =>
        splitter
          .write(chunk)
          .map(({ text, tooMuch }) =>
            tooMuch === undefined
              ? { raw: JSON.parse(decoder.decode(text)) as unknown }
              : { unreadable: tooMuch, identity: identityIn(Buffer.from(text).toString("utf8")) },
          ),
      ),
    end: () => {
      const around = splitter.end();
      if (around === undefined) throw new BrokenResponseError("the list ended early");
      return headOf(asProtocol(NOT_JSON, () => JSON.parse(decoder.decode(around)) as unknown));
    },
  };
}

/** What the beginning of an object's JSON says of it. */
export interface Identity {
  readonly key: ObjectKey | undefined;
  readonly version: string | undefined;
}

const VALUE = '"([^"\\\\]*)"';
const metadata = new RegExp(
  `"metadata":\\s*\\{\\s*"name":\\s*${VALUE}(?:,\\s*"generateName":\\s*${VALUE})?(?:,\\s*"namespace":\\s*${VALUE})?`,
);
const resourceVersion = new RegExp(`"resourceVersion":\\s*${VALUE}`);

/**
 * Key and version of an object that is too much to be read, from its first bytes: API servers write the fields of
 * metadata in the order of their Go type. Undefined where they stand otherwise.
 */
export function identityIn(beginning: string): Identity {
  const found = metadata.exec(beginning);
  const [, name, , namespace = ""] = found ?? [];
  const version = found === null ? undefined : resourceVersion.exec(beginning.slice(found.index))?.[1];
  return { key: name === undefined || name === "" ? undefined : `${namespace}/${name}`, version };
}

export interface ProtobufKind {
  readonly kind: string;
  readonly definition: Message;
}

const [METADATA_FIELD, ITEMS_FIELD] = [1, 2];

/** Reads a list of any size item by item; never holds more of it than one chunk's items and one that has not ended. */
export function protobufListParser(of: ProtobufKind): ListParser {
  const splitter = new FieldSplitter(use);
  const begun = beginning();
  let metadata: RawObject = {};
  const item = (field: CutField & { readonly opened: boolean }): ListItem[] => {
    if (field.opened && field.number === ITEMS_FIELD) return [itemOf(field, of.definition)];
    if (field.tooMuch !== undefined) throw new MalformedError(field.tooMuch);
    if (field.opened) metadata = readMessage(field.bytes, listMeta);
    else check(field, `${of.kind}List`);
    return [];
  };
  return {
    // One after the other: thousands of small items may be in a chunk, and others have their turn between two.
    *write(chunk) {
      for (const field of asProtocol(NOT_PROTOBUF, () => splitter.write(begun(chunk))))
        yield* asProtocol(NOT_PROTOBUF, () => item(field));
    },
    end: () => {
      if (!splitter.whole) throw new BrokenResponseError("the list ended early");
      return headOf({ metadata });
    },
  };
}

/** Type of a watch's event that can't be read, and the identity of its object. */
export function eventIn(beginning: Uint8Array): Identity & { readonly type: string | undefined } {
  const wrapped = fieldIn(fieldIn(beginning, 2), 1);
  return { type: textIn(beginning, 1), ...identityInProtobuf(fieldIn(wrapped.subarray(magic.length), 2)) };
}

/** @throws ProtocolError it has no version */
function headOf(list: unknown): ListHead {
  const head = objectAt(list, "metadata");
  const resourceVersion = textAt(head, "resourceVersion");
  if (resourceVersion === undefined) throw new ProtocolError("the list has no resourceVersion");
  return { resourceVersion, next: textAt(head, "continue") };
}

/** Fields of runtime.Unknown, and of every list in one. */
const [TYPE_META_FIELD, RAW_FIELD, ENCODING_FIELD] = [1, 2, 3];

function use(number: number, opened: boolean): Use {
  if (opened) return number === METADATA_FIELD || number === ITEMS_FIELD ? "take" : "pass";
  if (number === RAW_FIELD) return "open";
  return number === TYPE_META_FIELD || number === ENCODING_FIELD ? "take" : "pass";
}

/** Takes the magic number off a stream that comes in chunks. */
function beginning(): (chunk: Uint8Array) => Uint8Array {
  let seen = new Uint8Array(0);
  return (chunk) => {
    const missing = magic.length - seen.length;
    if (missing === 0) return chunk;
    seen = Uint8Array.of(...seen, ...chunk.subarray(0, missing));
    if (!beginsWithMagic(seen, seen.length)) throw new MalformedError("the magic number is missing");
    return chunk.subarray(missing);
  };
}

function itemOf({ bytes, tooMuch }: CutField, definition: Message): ListItem {
  if (tooMuch !== undefined) return { unreadable: tooMuch, identity: identityInProtobuf(bytes) };
  try {
    return { raw: readMessage(bytes, definition) };
  } catch (error) {
    return { unreadable: errorText(error), identity: identityInProtobuf(bytes) };
  }
}

/** @throws MalformedError something else was sent, or in another way */
function check({ number, bytes }: CutField, wanted: string): void {
  if (number === ENCODING_FIELD && bytes.length > 0) throw unknownEncoding(Buffer.from(bytes).toString("latin1"));
  if (number !== TYPE_META_FIELD) return;
  const kind = textAt(readMessage(bytes, typeMeta), "kind");
  if (kind !== wanted) throw new MalformedError(`a ${kind ?? "nameless kind"} in place of a ${wanted}`);
}

/**
 * Key and version of an object that can't be read, from its first bytes: Go writes fields in the order of their
 * numbers, metadata first.
 */
function identityInProtobuf(beginning: Uint8Array): Identity {
  const metadata = fieldIn(beginning, 1);
  const name = textIn(metadata, 1);
  const key = name === undefined ? undefined : (`${textIn(metadata, 3) ?? ""}/${name}` as const);
  return { key, version: key === undefined ? undefined : textIn(metadata, 6) };
}

/** Text with content that has not been cut off. */
function textIn(message: Uint8Array, number: number): string | undefined {
  const bytes = fieldIn(message, number, "whole");
  return bytes.length === 0 ? undefined : Buffer.from(bytes).toString("utf8");
}

/** The field's bytes, as far as they are there; none where the field is not. */
function fieldIn(message: Uint8Array, number: number, wanted: "beginning" | "whole" = "beginning"): Uint8Array {
  const reader = new BinaryReader(message);
  try {
    while (reader.pos < reader.len) {
      const tag = reader.uint32();
      if (tag >>> 3 !== number || (tag & 7) !== WireType.LengthDelimited) reader.skip(tag & 7, tag >>> 3);
      else {
        const end = reader.uint32() + reader.pos;
        return end > reader.len && wanted === "whole" ? nothing : message.subarray(reader.pos, end);
      }
    }
  } catch {
    // What is not there has been cut off.
  }
  return nothing;
}

const nothing = new Uint8Array(0);

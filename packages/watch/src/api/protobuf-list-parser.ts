import { errorText, type RawObject, textAt } from "@fairlead/base";
import { type CutField, FieldSplitter, type Use } from "../protobuf/field-splitter.ts";
import { listMeta } from "../protobuf/kinds/metadata.ts";
import { typeMeta } from "../protobuf/kinds/wrappers.ts";
import type { Message } from "../protobuf/message.ts";
import { MalformedError, readMessage } from "../protobuf/read-message.ts";
import { beginsWithMagic, magic, unknownEncoding } from "../protobuf/wrapped.ts";
import { BrokenResponseError, ProtocolError } from "./errors.ts";
import { headOf, type ListItem, type ListParser } from "./list-parser.ts";
import { identityIn } from "./protobuf-identity.ts";

/** A kind of objects that can be read. */
export interface ProtobufKind {
  readonly kind: string;
  readonly definition: Message;
}

/** Fields of runtime.Unknown, and of every list in one. */
const [TYPE_META_FIELD, RAW_FIELD, ENCODING_FIELD] = [1, 2, 3];
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
      for (const field of asProtocol(() => splitter.write(begun(chunk)))) yield* asProtocol(() => item(field));
    },
    end: () => {
      if (!splitter.whole) throw new BrokenResponseError("the list ended early");
      return headOf({ metadata });
    },
  };
}

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
  if (tooMuch !== undefined) return { unreadable: tooMuch, identity: identityIn(bytes) };
  try {
    return { raw: readMessage(bytes, definition) };
  } catch (error) {
    return { unreadable: errorText(error), identity: identityIn(bytes) };
  }
}

/** @throws MalformedError something else was sent, or in another way */
function check({ number, bytes }: CutField, wanted: string): void {
  if (number === ENCODING_FIELD && bytes.length > 0) throw unknownEncoding(Buffer.from(bytes).toString("latin1"));
  if (number !== TYPE_META_FIELD) return;
  const kind = textAt(readMessage(bytes, typeMeta), "kind");
  if (kind !== wanted) throw new MalformedError(`a ${kind ?? "nameless kind"} in place of a ${wanted}`);
}

/** @throws ProtocolError instead of MalformedError */
function asProtocol<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new ProtocolError(`the list is not protobuf: ${errorText(error)}`);
  }
}

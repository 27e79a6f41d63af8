import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { magic } from "../protobuf/wrapped.ts";
import type { Identity } from "./identity.ts";

/**
 * Key and version of an object that can't be read, from its first bytes: Go writes fields in the order of their
 * numbers, metadata first.
 */
export function identityIn(beginning: Uint8Array): Identity {
  const metadata = fieldIn(beginning, 1);
  const name = textIn(metadata, 1);
  const key = name === undefined ? undefined : (`${textIn(metadata, 3) ?? ""}/${name}` as const);
  return { key, version: key === undefined ? undefined : textIn(metadata, 6) };
}

/** Type of a watch's event that can't be read, and the identity of its object. */
export function eventIn(beginning: Uint8Array): Identity & { readonly type: string | undefined } {
  const wrapped = fieldIn(fieldIn(beginning, 2), 1);
  return { type: textIn(beginning, 1), ...identityIn(fieldIn(wrapped.subarray(magic.length), 2)) };
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

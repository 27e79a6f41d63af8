import { aligned, HEADER } from "./walk.ts";

/** NLA_F_NESTED: a mark upon the type of an attribute that is made of attributes. */
export const NESTED = 0x8000;

/** An attribute with its header and the bytes that align the next one. */
export function attribute(type: number, payload: Uint8Array): Buffer {
  const length = HEADER + payload.length;
  const bytes = Buffer.alloc(aligned(length));
  bytes.writeUInt16LE(length, 0);
  bytes.writeUInt16LE(type, 2);
  bytes.set(payload, HEADER);
  return bytes;
}

/** An attribute that is made of attributes. */
export function nest(type: number, ...attributes: readonly Uint8Array[]): Buffer {
  return attribute(type | NESTED, Buffer.concat(attributes));
}

import { objectAt, textAt, valueAt } from "@fairlead/base";
import { unknown } from "./kinds/wrappers.ts";
import { MalformedError, readMessage } from "./read-message.ts";

/** What every object in protobuf begins with: `k8s` and a zero byte (apimachinery's serializer/protobuf). */
export const magic = new Uint8Array([0x6b, 0x38, 0x73, 0x00]);

/** An object as it stands in its runtime.Unknown. */
export interface Wrapped {
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

const nothing = new Uint8Array(0);

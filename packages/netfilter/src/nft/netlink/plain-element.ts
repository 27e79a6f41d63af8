import { NESTED } from "../../netlink/parts.ts";
import { aligned, HEADER } from "../../netlink/walk.ts";
import { type Hex, hexOf } from "../hex.ts";
import type { SetElement } from "../model.ts";
import { DATA_VALUE, ELEMENT, LIST_ITEM } from "./numbers.ts";

/** What is around the key and the value of elements whose keys have one length, and whose values have one. */
interface Frame {
  readonly before: Hex;
  readonly between: Hex;
  readonly behind: Hex;
}

/** Above those of any attribute, whose length has 16 bits. */
const MOST_DIGITS = 2 ** 17;

/** By the digits of a key and of a value; the sets of a table have few of them. */
const frames = new Map<number, Frame>();

/**
 * The item of a set's list for an element that has a key and a value of bytes and nothing more; undefined: it has more.
 * Nearly all elements are such. Many of them as one text cost a start a third of what their attributes cost one by one:
 * native code makes the bytes.
 */
export function plainElement(element: SetElement): Hex | undefined {
  const { key, value, object, intervalEnd, timeout, expires, comment } = element;
  if (typeof value !== "string" || object !== undefined || intervalEnd !== undefined) return undefined;
  if (timeout !== undefined || expires !== undefined || comment !== undefined) return undefined;
  const { before, between, behind } = frameOf(key.length, value.length);
  return before + key + between + value + behind;
}

function frameOf(keyDigits: number, valueDigits: number): Frame {
  const lengths = keyDigits * MOST_DIGITS + valueDigits;
  const known = frames.get(lengths);
  if (known !== undefined) return known;
  const [key, value] = [dataFrame(ELEMENT.key, keyDigits / 2), dataFrame(ELEMENT.data, valueDigits / 2)];
  const frame = {
    before: header(LIST_ITEM | NESTED, HEADER + key.length + value.length) + key.before,
    between: key.behind + value.before,
    behind: value.behind,
  };
  frames.set(lengths, frame);
  return frame;
}

/** An attribute with one inside that has the bytes. */
function dataFrame(type: number, bytes: number) {
  const inner = HEADER + bytes;
  const length = HEADER + aligned(inner);
  return {
    length,
    before: header(type | NESTED, length) + header(DATA_VALUE, inner),
    behind: "00".repeat(aligned(inner) - inner),
  };
}

function header(type: number, length: number): Hex {
  return hexOf([length, length >> 8, type, type >> 8]);
}

/** Where something lies in a buffer: from `start` to before `end`. */
export interface Range {
  /** Offset of the first byte. */
  readonly start: number;
  /** Offset behind the last byte. */
  readonly end: number;
}

/** Length and type (16 bits each) go before an attribute's payload; lengths are those of header and payload. */
export const HEADER = 4;
/** NLA_F_NESTED and NLA_F_NET_BYTEORDER are marks upon the type (linux/netlink.h). */
const TYPE_MASK = 0x3fff;

/** Attributes begin at multiples of four. */
export const aligned = (length: number): number => (length + 3) & ~3;

/** The payload of the first attribute of a type; undefined where there is none. */
export function findAttribute(bytes: Buffer, within: Range, type: number): Range | undefined {
  // Not by `attributesIn`: of a hundred thousand tracked connections each is looked into a dozen times.
  for (let at = within.start, end = endAt(bytes, at, within); end !== undefined; end = endAt(bytes, at, within)) {
    if (typeAt(bytes, at) === type) return { start: at + HEADER, end };
    at += aligned(end - at);
  }
  return undefined;
}

interface Attribute extends Range {
  readonly type: number;
}

/** The payloads of all attributes, in their order. */
export function* attributesIn(bytes: Buffer, within: Range): Generator<Attribute, void, void> {
  for (let at = within.start, end = endAt(bytes, at, within); end !== undefined; end = endAt(bytes, at, within)) {
    yield { type: typeAt(bytes, at), start: at + HEADER, end };
    at += aligned(end - at);
  }
}

function typeAt(bytes: Buffer, at: number): number {
  return bytes.readUInt16LE(at + 2) & TYPE_MASK;
}

/** Undefined: it is too short to be an attribute, or longer than what it is in. */
function endAt(bytes: Buffer, at: number, within: Range): number | undefined {
  if (at + HEADER > within.end) return undefined;
  const end = at + bytes.readUInt16LE(at);
  return end < at + HEADER || end > within.end ? undefined : end;
}

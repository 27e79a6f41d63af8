/** Attributes of netlink messages, written and read. */

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

/** An attribute's length has 16 bits. */
const LONGEST = 0xffff;

/**
 * Writes netlink attributes one behind the other into a buffer that grows. Numbers are in network byte order. What is
 * longer than an attribute can be is a RangeError.
 */
export class AttributeWriter {
  #bytes: Buffer;
  #end = 0;

  constructor(size = 4096) {
    this.#bytes = Buffer.alloc(size);
  }

  /** Bytes that were written. */
  get length(): number {
    return this.#end;
  }

  /** What was written; the next write may change the buffer behind it. */
  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#end);
  }

  /** Room for `length` bytes at the end, zeroed. */
  room(length: number): { readonly bytes: Buffer; readonly at: number } {
    const at = this.#end;
    if (at + length > this.#bytes.length) {
      const larger = Buffer.alloc(Math.max(2 * this.#bytes.length, at + length));
      this.#bytes.copy(larger, 0, 0, at);
      this.#bytes = larger;
    }
    this.#end += length;
    return { bytes: this.#bytes, at };
  }

  /** @throws RangeError when what `write` wrote is longer than an attribute can be */
  nest(type: number, write: (writer: this) => void): this {
    const start = this.#end;
    this.#header(type | NESTED, 0);
    write(this);
    const length = this.#end - start;
    if (length > LONGEST) throw new RangeError(`a nested attribute of ${length} bytes; ${LONGEST} is the most`);
    this.#bytes[start] = length;
    this.#bytes[start + 1] = length >> 8;
    return this;
  }

  /** Writes an attribute of one byte. */
  u8(type: number, value: number): this {
    const { bytes, at } = this.#header(type, 1);
    bytes[at] = value;
    return this;
  }

  /** Writes an attribute of 32 bits in network byte order. */
  u32(type: number, value: number): this {
    const { bytes, at } = this.#header(type, 4);
    bytes.writeUInt32BE(value >>> 0, at);
    return this;
  }

  /** Writes an attribute of 64 bits in network byte order. */
  u64(type: number, value: bigint): this {
    const { bytes, at } = this.#header(type, 8);
    bytes.writeBigUInt64BE(value, at);
    return this;
  }

  /** A text with its zero byte. */
  text(type: number, value: string): this {
    const { bytes, at } = this.#header(type, Buffer.byteLength(value) + 1);
    bytes.write(value, at);
    return this;
  }

  /** Writes an attribute of bytes that are given as hex digits. */
  hex(type: number, value: string): this {
    const { bytes, at } = this.#header(type, value.length / 2);
    bytes.write(value, at, "hex");
    return this;
  }

  /**
   * Writes whole attributes that are given as hex digits.
   *
   * @throws RangeError for anything else than pairs of digits
   */
  digits(value: string): this {
    const { bytes, at } = this.room(value.length / 2);
    if (2 * bytes.write(value, at, "hex") !== value.length) throw new RangeError("attributes that are not hex digits");
    return this;
  }

  /** Writes an attribute of bytes. */
  raw(type: number, value: Uint8Array): this {
    const { bytes, at } = this.#header(type, value.length);
    bytes.set(value, at);
    return this;
  }

  #header(type: number, length: number): { readonly bytes: Buffer; readonly at: number } {
    const whole = HEADER + length;
    if (whole > LONGEST) throw new RangeError(`an attribute of ${whole} bytes; ${LONGEST} is the most`);
    const { bytes, at } = this.room(aligned(whole));
    // Byte by byte: a start writes a million of these with code that is not optimized yet.
    bytes[at] = whole;
    bytes[at + 1] = whole >> 8;
    bytes[at + 2] = type;
    bytes[at + 3] = type >> 8;
    return { bytes, at: at + HEADER };
  }
}

/** The attributes of one object, by type; of duplicate types the last one. */
export class Attributes {
  readonly #bytes: Buffer;
  readonly #ranges = new Map<number, Range>();

  /** What is too short to be an attribute, or longer than what it is in, ends the reading. */
  constructor(bytes: Buffer, start = 0, end = bytes.length) {
    this.#bytes = bytes;
    for (const found of attributesIn(bytes, { start, end })) this.#ranges.set(found.type, found);
  }

  /** Whether there is an attribute of this type. */
  has(type: number): boolean {
    return this.#ranges.has(type);
  }

  /** A byte; undefined where the attribute is absent. */
  u8(type: number): number | undefined {
    return this.#number(type, 1, (at) => this.#bytes.readUInt8(at));
  }

  /** A number of 32 bits in network byte order; undefined where the attribute is absent. */
  u32(type: number): number | undefined {
    return this.#number(type, 4, (at) => this.#bytes.readUInt32BE(at));
  }

  /** The same with a sign. */
  i32(type: number): number | undefined {
    return this.#number(type, 4, (at) => this.#bytes.readInt32BE(at));
  }

  /** A number of 64 bits in network byte order; undefined where the attribute is absent. */
  u64(type: number): bigint | undefined {
    return this.#number(type, 8, (at) => this.#bytes.readBigUInt64BE(at));
  }

  /** Text up to its first zero byte; undefined where the attribute is absent. */
  text(type: number): string | undefined {
    const range = this.#ranges.get(type);
    return range && this.#text(range);
  }

  /** The bytes as hex digits; undefined where the attribute is absent. */
  hex(type: number): string | undefined {
    const range = this.#ranges.get(type);
    return range === undefined ? undefined : this.#bytes.toString("hex", range.start, range.end);
  }

  /** The attributes within an attribute; undefined where it is absent. */
  nested(type: number): Attributes | undefined {
    const range = this.#ranges.get(type);
    return range === undefined ? undefined : new Attributes(this.#bytes, range.start, range.end);
  }

  /** The attributes of a list: each of them is made of attributes. */
  list(type: number): readonly Attributes[] {
    const range = this.#ranges.get(type);
    if (range === undefined) return [];
    return Array.from(attributesIn(this.#bytes, range), ({ start, end }) => new Attributes(this.#bytes, start, end));
  }

  /** The texts of a list of nothing else, whatever their types. */
  texts(type: number): readonly string[] {
    const range = this.#ranges.get(type);
    if (range === undefined) return [];
    return Array.from(attributesIn(this.#bytes, range), (one) => this.#text(one));
  }

  #text({ start, end }: Range): string {
    const text = this.#bytes.toString("utf8", start, end);
    const length = text.indexOf("\0");
    return length < 0 ? text : text.slice(0, length);
  }

  #number<T>(type: number, length: number, read: (at: number) => T): T | undefined {
    const range = this.#ranges.get(type);
    return range === undefined || range.end - range.start < length ? undefined : read(range.start);
  }
}

/** Where something lies in a buffer: from `start` to before `end`. */
export interface Range {
  /** Offset of the first byte. */
  readonly start: number;
  /** Offset behind the last byte. */
  readonly end: number;
}

/** Length and type (16 bits each) go before an attribute's payload; lengths are those of header and payload. */
export const HEADER = 4;

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

/** NLA_F_NESTED and NLA_F_NET_BYTEORDER are marks upon the type (linux/netlink.h). */
const TYPE_MASK = 0x3fff;

function typeAt(bytes: Buffer, at: number): number {
  return bytes.readUInt16LE(at + 2) & TYPE_MASK;
}

/** Undefined: it is too short to be an attribute, or longer than what it is in. */
function endAt(bytes: Buffer, at: number, within: Range): number | undefined {
  if (at + HEADER > within.end) return undefined;
  const end = at + bytes.readUInt16LE(at);
  return end < at + HEADER || end > within.end ? undefined : end;
}

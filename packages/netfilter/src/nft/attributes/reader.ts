import type { Hex } from "../hex.ts";

const HEADER = 4;
/** NLA_F_NESTED and NLA_F_NET_BYTEORDER are marks upon the type. */
const TYPE_MASK = 0x3fff;

/** The attributes of one object, by type; of a type that stands there twice, the last one. */
export class Attributes {
  readonly #bytes: Buffer;
  readonly #ranges = new Map<number, readonly [start: number, end: number]>();

  /** What is too short to be an attribute, or longer than what it is in, ends the reading. */
  constructor(bytes: Buffer, start = 0, end = bytes.length) {
    this.#bytes = bytes;
    for (const [type, from, to] of rangesIn(bytes, start, end)) this.#ranges.set(type, [from, to]);
  }

  has(type: number): boolean {
    return this.#ranges.has(type);
  }

  u8(type: number): number | undefined {
    return this.#number(type, 1, (at) => this.#bytes.readUInt8(at));
  }

  u32(type: number): number | undefined {
    return this.#number(type, 4, (at) => this.#bytes.readUInt32BE(at));
  }

  i32(type: number): number | undefined {
    return this.#number(type, 4, (at) => this.#bytes.readInt32BE(at));
  }

  u64(type: number): bigint | undefined {
    return this.#number(type, 8, (at) => this.#bytes.readBigUInt64BE(at));
  }

  text(type: number): string | undefined {
    const range = this.#ranges.get(type);
    if (range === undefined) return undefined;
    const text = this.#bytes.toString("utf8", ...range);
    const end = text.indexOf("\0");
    return end < 0 ? text : text.slice(0, end);
  }

  hex(type: number): Hex | undefined {
    const range = this.#ranges.get(type);
    return range === undefined ? undefined : this.#bytes.toString("hex", ...range);
  }

  nested(type: number): Attributes | undefined {
    const range = this.#ranges.get(type);
    return range === undefined ? undefined : new Attributes(this.#bytes, ...range);
  }

  /** The attributes of a list: each of them is made of attributes. */
  list(type: number): readonly Attributes[] {
    const range = this.#ranges.get(type);
    if (range === undefined) return [];
    return Array.from(rangesIn(this.#bytes, ...range), ([, from, to]) => new Attributes(this.#bytes, from, to));
  }

  #number<T>(type: number, length: number, read: (at: number) => T): T | undefined {
    const range = this.#ranges.get(type);
    return range === undefined || range[1] - range[0] < length ? undefined : read(range[0]);
  }
}

function* rangesIn(bytes: Buffer, start: number, end: number): Generator<readonly [number, number, number]> {
  for (let at = start; at + HEADER <= end; ) {
    const to = at + bytes.readUInt16LE(at);
    if (to < at + HEADER || to > end) return;
    yield [bytes.readUInt16LE(at + 2) & TYPE_MASK, at + HEADER, to];
    at += (to - at + 3) & ~3;
  }
}

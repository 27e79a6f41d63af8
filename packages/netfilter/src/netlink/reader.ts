import { attributesIn, type Range } from "./walk.ts";

/** The attributes of one object, by type; of a type that stands there twice, the last one. */
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

import { NESTED } from "./parts.ts";
import { aligned, HEADER } from "./walk.ts";

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

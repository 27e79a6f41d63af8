/**
 * Cuts a JSON text into the items of one array while it comes in, so that no more than one item is in memory as text.
 */

import { BEGINNING_BYTES, MAX_DEPTH, MAX_OBJECT_BYTES, mebibytes } from "./limits.ts";

/** The text may be JSON, and is larger or deeper than anything that is read. */
export class TooMuchError extends SyntaxError {
  override readonly name = "TooMuchError";
}

/** One item of a list as it stands in the text. */
interface JsonItem {
  /** Of its first byte, from the text's beginning. */
  readonly offset: number;
  /** Only its beginning where `tooMuch` says why. */
  readonly text: Uint8Array;
  /** It is too large or too deeply nested to be read, and was passed over. */
  readonly tooMuch: string | undefined;
}

const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

const [SPACE, QUOTE, COMMA, OPEN, BACKSLASH, CLOSE, OPEN_OBJECT, CLOSE_OBJECT] = [
  0x20, 0x22, 0x2c, 0x5b, 0x5c, 0x5d, 0x7b, 0x7d,
];

/**
 * Cuts the JSON of a list (an object with `items`, or an array) into its items as it comes, without reading them: it
 * looks at texts, brackets and commas only. What is too large is passed over at the cost of its bytes; the rest is for
 * `JSON.parse`.
 */
export class JsonSplitter {
  readonly #around = new Gathered();
  readonly #item = new Gathered();
  #completed: JsonItem[] = [];
  #where: "around" | "between" | "item" | "scalar" = "around";
  #inText = false;
  #escaped = false;
  #depth = 0;
  /** Depth that the list's items are at; -1: no list has begun. */
  #itemDepth = -1;
  #itemOffset = 0;
  #last: "open" | "item" | "comma" = "open";
  /** Bytes in the chunks before this one. */
  #offset = 0;
  /** The first byte of the chunk that has not been gathered yet. */
  #from = 0;
  /** The end of what stood around the items in the chunks before this one. */
  #tail = "";

  /**
   * @returns the items that the chunk completes
   * @throws SyntaxError what stands between the items can't be JSON
   * @throws TooMuchError what stands around them is too large or too deep
   */
  write(chunk: Uint8Array): readonly JsonItem[] {
    this.#completed = [];
    this.#from = 0;
    let at = this.#offset === 0 && BYTE_ORDER_MARK.every((byte, i) => chunk[i] === byte) ? BYTE_ORDER_MARK.length : 0;
    this.#from = at;
    while (at < chunk.length) at = this.#step(chunk, at);
    if (this.#where === "around") {
      this.#tail = latin1(this.#tail, chunk, this.#from, chunk.length);
      this.#gatherAround(chunk, chunk.length);
    } else if (this.#where !== "between") this.#gatherItem(chunk, chunk.length);
    this.#offset += chunk.length;
    return this.#completed;
  }

  /** @returns the text with an empty list in place of its items; undefined: it has not ended */
  end(): Uint8Array | undefined {
    const whole = this.#where === "around" && this.#depth === 0 && !this.#inText && this.#around.size > 0;
    return whole ? this.#around.take() : undefined;
  }

  #step(chunk: Uint8Array, at: number): number {
    if (this.#inText) return this.#text(chunk, at);
    if (this.#where === "between") return this.#between(chunk, at);
    return this.#where === "scalar" ? this.#scalar(chunk, at) : this.#structure(chunk, at);
  }

  #text(chunk: Uint8Array, from: number): number {
    let at = from;
    if (this.#escaped) {
      this.#escaped = false;
      at++;
    }
    while (at < chunk.length && chunk[at] !== QUOTE) at += chunk[at] === BACKSLASH ? 2 : 1;
    if (at >= chunk.length) {
      this.#escaped = at > chunk.length;
      return chunk.length;
    }
    this.#inText = false;
    if (this.#where === "item" && this.#depth === this.#itemDepth) this.#complete(chunk, at + 1);
    return at + 1;
  }

  /** Outside of texts, around the items or in one. */
  #structure(chunk: Uint8Array, from: number): number {
    for (let at = from; at < chunk.length; at++) {
      switch (chunk[at]) {
        case QUOTE:
          this.#inText = true;
          return at + 1;
        case OPEN:
          if (this.#where === "around" && this.#beginsList(chunk, at)) return this.#beginList(chunk, at + 1);
          this.#deeper(chunk, at);
          break;
        case OPEN_OBJECT:
          this.#deeper(chunk, at);
          break;
        case CLOSE:
        case CLOSE_OBJECT:
          this.#depth--;
          if (this.#where === "item" && this.#depth === this.#itemDepth) {
            this.#complete(chunk, at + 1);
            return at + 1;
          }
      }
    }
    return chunk.length;
  }

  #between(chunk: Uint8Array, from: number): number {
    let at = from;
    while (at < chunk.length && Number(chunk[at]) <= SPACE) at++;
    if (at === chunk.length) return at;
    const byte = chunk[at];
    if (byte === COMMA || byte === CLOSE) {
      if (this.#last === "comma" || (byte === COMMA && this.#last === "open")) throw misplaced(byte);
      this.#last = "comma";
      if (byte === CLOSE) this.#endList(at);
      return at + 1;
    }
    if (this.#last === "item") throw new SyntaxError("a comma is missing between two items");
    this.#from = at;
    this.#itemOffset = this.#offset + at;
    this.#where = byte === QUOTE || byte === OPEN || byte === OPEN_OBJECT ? "item" : "scalar";
    return at;
  }

  #scalar(chunk: Uint8Array, from: number): number {
    let at = from;
    while (at < chunk.length && !endsScalar(Number(chunk[at]))) at++;
    if (at < chunk.length) this.#complete(chunk, at);
    return at;
  }

  #beginsList(chunk: Uint8Array, at: number): boolean {
    if (this.#itemDepth !== -1 || this.#depth > 1) return false;
    return this.#depth === 0 || /(?<!\\)"items"\s*:\s*$/.test(latin1(this.#tail, chunk, this.#from, at));
  }

  #beginList(chunk: Uint8Array, at: number): number {
    this.#gatherAround(chunk, at);
    this.#depth++;
    this.#itemDepth = this.#depth;
    this.#where = "between";
    return at;
  }

  #endList(at: number): void {
    this.#depth--;
    this.#where = "around";
    this.#from = at;
    this.#tail = "";
  }

  #complete(chunk: Uint8Array, end: number): void {
    this.#gatherItem(chunk, end);
    const tooMuch = this.#item.dropped;
    this.#completed.push({ offset: this.#itemOffset, text: this.#item.take(), tooMuch });
    this.#where = "between";
    this.#last = "item";
  }

  #deeper(chunk: Uint8Array, at: number): void {
    this.#depth++;
    if (this.#depth - Math.max(this.#itemDepth, 0) <= MAX_DEPTH) return;
    const why = `nested deeper than ${MAX_DEPTH} levels`;
    if (this.#where === "around") throw new TooMuchError(why);
    if (this.#item.dropped !== undefined) return;
    this.#gatherItem(chunk, at);
    this.#item.drop(why);
  }

  #gatherItem(chunk: Uint8Array, end: number): void {
    this.#item.add(chunk.subarray(this.#from, end));
    this.#from = end;
    if (this.#item.size > MAX_OBJECT_BYTES) this.#item.drop(`larger than ${mebibytes(MAX_OBJECT_BYTES)}`);
  }

  #gatherAround(chunk: Uint8Array, end: number): void {
    this.#around.add(chunk.subarray(this.#from, end));
    this.#from = end;
    if (this.#around.size > MAX_OBJECT_BYTES) throw new TooMuchError(`larger than ${mebibytes(MAX_OBJECT_BYTES)}`);
  }
}

const nothing = new Uint8Array(0);

/** Bytes of one value that may come in many chunks, however small; of what is not wanted only the beginning stays. */
export class Gathered {
  /** The one part that has come, or the memory that the parts are copied to. */
  #bytes: Uint8Array = nothing;
  #kept = 0;
  /** Bytes that have come, those dropped included. */
  size = 0;
  /** Why the rest is not kept; undefined: it is. */
  dropped: string | undefined;

  add(part: Uint8Array): void {
    this.size += part.length;
    if (this.dropped !== undefined || part.length === 0) return;
    if (this.#kept === 0) this.#bytes = part;
    else this.#append(part);
    this.#kept += part.length;
  }

  /**
   * Takes what a chunk has of a value whose length is known; of one longer than `maxObjectBytes` the beginning stays.
   *
   * @returns where in the chunk the value ends, or the chunk does
   */
  addUpTo(length: number, chunk: Uint8Array, at: number): number {
    const end = Math.min(chunk.length, at + length - this.size);
    this.add(chunk.subarray(at, end));
    const known = this.size >= Math.min(length, BEGINNING_BYTES);
    if (length > MAX_OBJECT_BYTES && known) this.drop(`larger than ${mebibytes(MAX_OBJECT_BYTES)}`);
    return end;
  }

  /** From here on only the beginning of what has come is kept. */
  drop(why: string): void {
    if (this.dropped !== undefined) return;
    this.dropped = why;
    this.#kept = Math.min(this.#kept, BEGINNING_BYTES);
    // A copy, since a view keeps all that it is of.
    this.#bytes = this.#bytes.slice(0, this.#kept);
  }

  /** What is kept; the next value begins. */
  take(): Uint8Array {
    const bytes = this.#bytes.subarray(0, this.#kept);
    this.#bytes = nothing;
    this.#kept = 0;
    this.size = 0;
    this.dropped = undefined;
    return bytes;
  }

  #append(part: Uint8Array): void {
    const needed = this.#kept + part.length;
    // A first part is a view that ends where it ends: there is never room after it.
    if (needed > this.#bytes.length) {
      const larger = new Uint8Array(2 * needed);
      larger.set(this.#bytes.subarray(0, this.#kept));
      this.#bytes = larger;
    }
    this.#bytes.set(part, this.#kept);
  }
}

/** As many bytes before a bracket are looked at for the key that it belongs to. */
const KEY_REACH = 32;

function endsScalar(byte: number): boolean {
  return byte <= SPACE || byte === COMMA || byte === CLOSE || byte === CLOSE_OBJECT;
}

function misplaced(byte: number): SyntaxError {
  return new SyntaxError(`a ${JSON.stringify(String.fromCharCode(byte))} where an item should be`);
}

/** The last bytes before `end`, those of the chunks before included. */
function latin1(tail: string, chunk: Uint8Array, from: number, end: number): string {
  const bytes = chunk.subarray(Math.max(from, end - KEY_REACH), end);
  return (tail + Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1")).slice(-KEY_REACH);
}

import { BEGINNING_BYTES, MAX_OBJECT_BYTES, mebibytes } from "../limits.ts";

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

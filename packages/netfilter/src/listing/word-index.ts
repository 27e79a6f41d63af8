/** Words of a text in bytes, found again by what they say without a string for each. */
export class WordIndex {
  readonly #bytes: Uint8Array;
  /** By hash: the last word of that hash, from 1; 0: there is none. */
  readonly #last: Int32Array;
  /** The word of the same hash before, likewise. */
  readonly #before: number[] = [];
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];

  /** @param expected how many words there may be; more are slower */
  constructor(bytes: Uint8Array, expected: number) {
    this.#bytes = bytes;
    this.#last = new Int32Array(2 ** Math.ceil(Math.log2(expected + 16)));
  }

  /** Words added so far; the number of the next one. */
  get size(): number {
    return this.#starts.length;
  }

  add(from: number, to: number): void {
    const slot = this.#slot(this.#bytes, from, to);
    this.#before.push(this.#last[slot] ?? 0);
    this.#starts.push(from);
    this.#ends.push(to);
    this.#last[slot] = this.#starts.length;
  }

  /** The last word that says what stands there in these bytes; -1: there is none. */
  last(bytes: Uint8Array, from: number, to: number): number {
    return this.#same((this.#last[this.#slot(bytes, from, to)] ?? 0) - 1, bytes, from, to);
  }

  /** The last one before that says the same; -1: there is none. */
  before(word: number): number {
    const [from, to] = this.at(word);
    return this.#same((this.#before[word] ?? 0) - 1, this.#bytes, from, to);
  }

  #same(first: number, bytes: Uint8Array, from: number, to: number): number {
    for (let word = first; word >= 0; word = (this.#before[word] ?? 0) - 1) {
      const start = this.#starts[word] ?? 0;
      const length = (this.#ends[word] ?? 0) - start;
      if (length === to - from && isSame(this.#bytes, start, bytes, from, length)) return word;
    }
    return -1;
  }

  /** Where a word begins and ends. */
  at(word: number): readonly [from: number, to: number] {
    return [this.#starts[word] ?? 0, this.#ends[word] ?? 0];
  }

  /** FNV-1a, cut to the size of the table. */
  #slot(bytes: Uint8Array, from: number, to: number): number {
    let hash = 0x811c9dc5;
    for (let at = from; at < to; at += 1) hash = Math.imul(hash ^ (bytes[at] ?? 0), 0x01000193);
    return (hash ^ (hash >>> 15)) & (this.#last.length - 1);
  }
}

export function isSame(a: Uint8Array, aFrom: number, b: Uint8Array, bFrom: number, length: number): boolean {
  for (let at = 0; at < length; at += 1) if (a[aFrom + at] !== b[bFrom + at]) return false;
  return true;
}

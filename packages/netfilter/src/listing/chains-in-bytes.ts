import type { IPFamily } from "../rule/rule.ts";
import { parseChainLine } from "../text/line.ts";
import { type SavedChain, TextChain } from "./saved-chain.ts";
import { WordIndex } from "./word-index.ts";

/** Bytes for each chain of a service in a listing, at least. */
const CHAIN_BYTES = 256;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The chains of one table of a listing. Of those that nothing asks for it holds a few numbers. */
export class ChainsInBytes implements ReadonlyMap<string, SavedChain> {
  readonly #bytes: Uint8Array;
  readonly #family: IPFamily;
  readonly #declared: WordIndex;
  readonly #appended: WordIndex;
  /** Of each block of `#appended`: after its end, the number of its first line, how many lines. */
  readonly #blocks: number[] = [];
  readonly #made = new Map<string, TextChain>();

  constructor(bytes: Uint8Array, family: IPFamily) {
    this.#bytes = bytes;
    this.#family = family;
    this.#declared = new WordIndex(bytes, bytes.length / CHAIN_BYTES);
    this.#appended = new WordIndex(bytes, bytes.length / CHAIN_BYTES);
  }

  /** A line `:NAME …`, by the place of its name. */
  declare(from: number, to: number): void {
    this.#declared.add(from, to);
  }

  isDeclared(from: number, to: number): boolean {
    return this.#declared.last(this.#bytes, from, to) >= 0;
  }

  /** Lines `-A NAME …`, by the place of the name in the first one: up to where they go, its number, how many. */
  append(from: number, to: number, end: number, line: number, lines: number): void {
    this.#appended.add(from, to);
    this.#blocks.push(end, line, lines);
  }

  get(name: string): SavedChain | undefined {
    const made = this.#made.get(name) ?? this.#make(name);
    if (made !== undefined) this.#made.set(name, made);
    return made;
  }

  #make(name: string): TextChain | undefined {
    const word = encoder.encode(name);
    const declared = this.#declared.last(word, 0, word.length);
    if (declared < 0) return undefined;
    const chain = new TextChain(this.#declaration(declared), this.#family);
    for (const block of this.#blocksOf(word, declared)) this.#addBlock(chain, block);
    return chain;
  }

  /** A chain that is declared once more begins anew. */
  #blocksOf(name: Uint8Array, declared: number): readonly number[] {
    const [since] = this.#declared.at(declared);
    const found: number[] = [];
    let at = this.#appended.last(name, 0, name.length);
    for (; at >= 0 && this.#appended.at(at)[0] > since; at = this.#appended.before(at)) found.push(at);
    return found.reverse();
  }

  #declaration(word: number) {
    const [from] = this.#declared.at(word);
    const end = this.#bytes.indexOf(0x0a, from);
    return parseChainLine(this.#text(from - 1, end < 0 ? this.#bytes.length : end));
  }

  #addBlock(chain: TextChain, block: number): void {
    const [name] = this.#appended.at(block);
    const [end = 0, line = 0, lines = 0] = this.#blocks.slice(block * 3, block * 3 + 3);
    // From the chain's name on: what stands before it in its line, counters perhaps, is irrelevant.
    const text = `-A ${this.#text(name, end)}`;
    chain.add({ text, from: 0, to: text.length, line, lines });
  }

  #text(from: number, to: number): string {
    return decoder.decode(this.#bytes.subarray(from, to));
  }

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  get size(): number {
    return [...this.keys()].length;
  }

  *keys(): MapIterator<string> {
    const names = new Set<string>();
    for (let word = 0; word < this.#declared.size; word += 1) names.add(this.#text(...this.#declared.at(word)));
    yield* names;
  }

  *values(): MapIterator<SavedChain> {
    for (const [, chain] of this.entries()) yield chain;
  }

  *entries(): MapIterator<[string, SavedChain]> {
    for (const name of this.keys()) {
      const chain = this.get(name);
      if (chain !== undefined) yield [name, chain];
    }
  }

  [Symbol.iterator](): MapIterator<[string, SavedChain]> {
    return this.entries();
  }

  forEach(to: (chain: SavedChain, name: string, all: ReadonlyMap<string, SavedChain>) => void): void {
    for (const [name, chain] of this.entries()) to(chain, name, this);
  }
}

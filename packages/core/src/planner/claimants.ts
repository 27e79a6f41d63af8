import { Heap } from "@fairlead/base";

/**
 * The claimants of one thing, with the smallest in byte order readily available: a heap, in which a member that has
 * gone stays until it comes to the top. Ten thousand services may well claim one address.
 */
export class Claimants {
  readonly #members: Set<string>;
  #heap = new Heap(isBefore);

  constructor(members: Iterable<string>) {
    this.#members = new Set(members);
    this.#rebuild();
  }

  get size(): number {
    return this.#members.size;
  }

  get first(): string | undefined {
    return this.#heap.first;
  }

  add(member: string): void {
    if (this.#members.has(member)) return;
    this.#members.add(member);
    this.#heap.push(member);
    // Who comes and goes again and again leaves its traces.
    if (this.#heap.size > 2 * this.#members.size + 16) this.#rebuild();
  }

  delete(member: string): void {
    if (!this.#members.delete(member)) return;
    for (let top = this.first; top !== undefined && !this.#members.has(top); top = this.first) this.#heap.pop();
  }

  /** Without the members that have gone. */
  #rebuild(): void {
    this.#heap = new Heap(isBefore, [...this.#members].sort(byBytes));
  }
}

function isBefore(one: string, other: string): boolean {
  return one < other;
}

function byBytes(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

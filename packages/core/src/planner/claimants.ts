/**
 * Those who claim one thing, the first in byte order at hand: a binary heap, in which who has gone stays until it comes
 * to the top. Ten thousand services may well claim one address.
 */
export class Claimants {
  readonly #members: Set<string>;
  #heap: string[] = [];

  constructor(members: Iterable<string>) {
    this.#members = new Set(members);
    this.#rebuild();
  }

  get size(): number {
    return this.#members.size;
  }

  get first(): string | undefined {
    return this.#heap[0];
  }

  add(member: string): void {
    if (this.#members.has(member)) return;
    this.#members.add(member);
    this.#push(member);
    // Who comes and goes again and again leaves its traces.
    if (this.#heap.length > 2 * this.#members.size + 16) this.#rebuild();
  }

  delete(member: string): void {
    if (!this.#members.delete(member)) return;
    for (let top = this.#heap[0]; top !== undefined && !this.#members.has(top); top = this.#heap[0]) this.#pop();
  }

  /** A sorted list is a heap. */
  #rebuild(): void {
    this.#heap = [...this.#members].sort(byBytes);
  }

  #push(member: string): void {
    const heap = this.#heap;
    let at = heap.push(member) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = heap[above] ?? "";
      if (parent <= member) break;
      heap[at] = parent;
      at = above;
    }
    heap[at] = member;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (let below = smaller(heap, 1); ; below = smaller(heap, 2 * at + 1)) {
      const child = heap[below];
      if (child === undefined || last <= child) break;
      heap[at] = child;
      at = below;
    }
    heap[at] = last;
  }
}

/** Of two neighbours in the heap the place of the smaller one. */
function smaller(heap: readonly string[], left: number): number {
  const [one, other] = [heap[left], heap[left + 1]];
  return one !== undefined && other !== undefined && other < one ? left + 1 : left;
}

function byBytes(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

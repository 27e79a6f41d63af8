/** Keys that stay until they were deleted as often as they were added. */
export class Counted {
  readonly #counts = new Map<string, number>();

  get size(): number {
    return this.#counts.size;
  }

  keys(): IterableIterator<string> {
    return this.#counts.keys();
  }

  has(key: string): boolean {
    return this.#counts.has(key);
  }

  count(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  add(key: string): void {
    this.#counts.set(key, this.count(key) + 1);
  }

  delete(key: string): void {
    const left = this.count(key) - 1;
    if (left > 0) this.#counts.set(key, left);
    else this.#counts.delete(key);
  }
}

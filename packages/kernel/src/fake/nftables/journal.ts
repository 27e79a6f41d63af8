/** What a transaction has changed so far, so that all of it can be taken back. */
export class Journal {
  readonly #undo: (() => void)[] = [];
  readonly #kept = new Set<unknown>();

  /** @param undo takes back the step that was just done */
  did(undo: () => void): void {
    this.#undo.push(undo);
  }

  set<K, V>(map: Map<K, V>, key: K, value: V): void {
    const before = map.get(key);
    map.set(key, value);
    this.did(() => (before === undefined ? map.delete(key) : map.set(key, before)));
  }

  /** From a map whose order is invisible. */
  delete<K, V>(map: Map<K, V>, key: K): void {
    const before = map.get(key);
    if (before === undefined) return;
    map.delete(key);
    this.did(() => map.set(key, before));
  }

  /** From a map that is listed in its order, which has to be the same again. */
  deleteInOrder<K, V>(map: Map<K, V>, key: K): void {
    if (!this.#kept.has(map)) {
      this.#kept.add(map);
      const entries = [...map];
      this.did(() => {
        map.clear();
        for (const [one, value] of entries) map.set(one, value);
      });
    }
    map.delete(key);
  }

  /** Takes back all, the last step first. */
  takeBack(): void {
    for (let undo = this.#undo.pop(); undo !== undefined; undo = this.#undo.pop()) undo();
    this.#kept.clear();
  }
}

/** Text that names an object among all resources. */
export type ObjectId = string;

/** Which files hold which object; of several, the last in the order of names has it. */
export class Ownership {
  readonly #byFile = new Map<string, ReadonlySet<ObjectId>>();
  /** In the order of names. */
  readonly #byId = new Map<ObjectId, readonly string[]>();

  /** @returns what the file held before and doesn't hold now */
  replace(file: string, ids: ReadonlySet<ObjectId>): ReadonlySet<ObjectId> {
    const before = this.#byFile.get(file) ?? new Set<ObjectId>();
    const gone = new Set([...before].filter((id) => !ids.has(id)));
    for (const id of gone)
      this.#set(
        id,
        this.holders(id).filter((other) => other !== file),
      );
    for (const id of ids) if (!before.has(id)) this.#set(id, [...this.holders(id), file].sort());
    if (ids.size === 0) this.#byFile.delete(file);
    else this.#byFile.set(file, ids);
    return gone;
  }

  holders(id: ObjectId): readonly string[] {
    return this.#byId.get(id) ?? [];
  }

  winner(id: ObjectId): string | undefined {
    return this.holders(id).at(-1);
  }

  count(file: string): number {
    return this.#byFile.get(file)?.size ?? 0;
  }

  total(): number {
    return this.#byId.size;
  }

  #set(id: ObjectId, files: readonly string[]): void {
    if (files.length === 0) this.#byId.delete(id);
    else this.#byId.set(id, files);
  }
}

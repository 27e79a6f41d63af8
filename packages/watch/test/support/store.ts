import { objectAt, type RawObject, textAt, valueAt } from "../../src/raw.ts";

export interface StoredEvent {
  readonly version: number;
  readonly path: string;
  /** What the object was before and is after the change. */
  readonly before: RawObject | undefined;
  readonly after: RawObject | undefined;
}

/** What an API server keeps: objects with resourceVersions, and the changes since the last compaction. */
export class Store {
  version = 100;
  /** Changes up to this version are forgotten: watches from before get 410. */
  compacted = 100;
  readonly #objects = new Map<string, Map<string, RawObject>>();
  readonly #events: StoredEvent[] = [];
  readonly #listeners = new Set<(event: StoredEvent) => void>();

  put(path: string, raw: RawObject): void {
    const key = keyIn(raw);
    const before = this.#table(path).get(key);
    this.version++;
    const metadata = { ...objectAt(raw, "metadata"), resourceVersion: String(this.version) };
    const after = { ...raw, metadata };
    this.#table(path).set(key, after);
    this.#record({ version: this.version, path, before, after });
  }

  delete(path: string, key: string): void {
    const before = this.#table(path).get(key);
    if (before === undefined) return;
    this.version++;
    this.#table(path).delete(key);
    this.#record({ version: this.version, path, before, after: undefined });
  }

  list(path: string): readonly RawObject[] {
    return [...this.#table(path)].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, raw]) => raw);
  }

  since(version: number): readonly StoredEvent[] {
    return this.#events.filter((event) => event.version > version);
  }

  compact(): void {
    this.compacted = this.version;
  }

  onEvent(listener: (event: StoredEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #record(event: StoredEvent): void {
    this.#events.push(event);
    for (const listener of this.#listeners) listener(event);
  }

  #table(path: string): Map<string, RawObject> {
    const table = this.#objects.get(path) ?? new Map<string, RawObject>();
    this.#objects.set(path, table);
    return table;
  }
}

export function keyIn(raw: RawObject): string {
  const metadata = objectAt(raw, "metadata");
  return `${textAt(metadata, "namespace") ?? ""}/${textAt(metadata, "name")}`;
}

/** Just the selectors that are used here: `!label`, `a.b!=value`, `a.b=value`. */
export function selection(query: URLSearchParams): (raw: RawObject) => boolean {
  const label = query.get("labelSelector")?.replace(/^!/, "");
  const field = /^([\w.]+?)(!?=)(.*)$/.exec(query.get("fieldSelector") ?? "");
  return (raw) => {
    const labels = objectAt(objectAt(raw, "metadata"), "labels");
    if (label !== undefined && valueAt(labels, label) !== undefined) return false;
    if (field === null) return true;
    const value = (field[1] ?? "").split(".").reduce<unknown>((at, name) => valueAt(at, name), raw);
    return field[2] === "=" ? value === field[3] : value !== field[3];
  };
}

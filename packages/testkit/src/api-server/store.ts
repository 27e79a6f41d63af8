import { objectAt, type RawObject, textAt } from "@fairlead/base";

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

  /** @param path of the collection in all namespaces, such as `/api/v1/services` */
  put(path: string, raw: RawObject): RawObject {
    const key = keyIn(raw);
    const before = this.#table(path).get(key);
    this.version++;
    const metadata = { ...objectAt(raw, "metadata"), resourceVersion: String(this.version) };
    const after = { ...raw, metadata };
    this.#table(path).set(key, after);
    this.#record({ version: this.version, path, before, after });
    return after;
  }

  /** @param key `namespace/name`; without a namespace `/name` */
  get(path: string, key: string): RawObject | undefined {
    return this.#table(path).get(key);
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

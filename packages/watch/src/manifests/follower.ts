import { readFile } from "node:fs/promises";
import { breather } from "../breathe.ts";
import type { ObjectKey, ResourceName } from "../change.ts";
import type { Publisher } from "../publisher.ts";
import { errorText } from "../raw.ts";
import type { OnReport } from "../report.ts";
import type { ResourceSpec } from "../resources.ts";
import { type ObjectId, Ownership } from "./ownership.ts";
import { type ManifestObject, readManifest } from "./read.ts";
import { signatureOf } from "./scan.ts";
import { ManifestSyntaxError } from "./syntax-error.ts";

/** The consumer's side of one pass over the files, and what the files held at the last one. */
export class ManifestFollower {
  readonly #specs: readonly ResourceSpec[];
  readonly #to: ReadonlyMap<ResourceName, Publisher>;
  readonly #onReport: OnReport;
  readonly #ownership = new Ownership();
  /** Signature of each file as last read, well or not. */
  readonly #read = new Map<string, string>();
  /** From which file an object was last given. */
  readonly #givenFrom = new Map<ObjectId, string>();
  /** Duplicates that were reported. */
  readonly #known = new Set<string>();

  constructor(specs: readonly ResourceSpec[], to: ReadonlyMap<ResourceName, Publisher>, onReport: OnReport) {
    this.#specs = specs;
    this.#to = to;
    this.#onReport = onReport;
  }

  get objects(): number {
    return this.#ownership.total();
  }

  /**
   * Takes in what has changed in the files; nothing that only moved from one file to another is deleted on the way.
   *
   * @param files in the order of their names, each with its signature
   * @returns true: a file changed while it was read, so look again soon
   */
  async pass(files: ReadonlyMap<string, string>): Promise<boolean> {
    let unstable = false;
    const gone = new Set<ObjectId>();
    // The last file wins, so it comes first: then each object is given once.
    for (const [file, signature] of [...files].reverse()) {
      if (this.#read.get(file) === signature) continue;
      const stable = await this.#take(file, gone);
      if (stable) this.#read.set(file, signature);
      else unstable = true;
    }
    for (const file of [...this.#read.keys()].filter((known) => !files.has(known))) this.#drop(file, gone);
    await this.#settle(gone);
    for (const publisher of this.#to.values()) await publisher.complete();
    return unstable;
  }

  async #take(file: string, gone: Set<ObjectId>): Promise<boolean> {
    const before = await signatureOf(file);
    if (before === undefined) return false;
    const objects = await this.#objectsOf(file);
    if ((await signatureOf(file)) !== before) return false;
    if (objects === undefined) return true;
    for (const id of this.#ownership.replace(file, new Set(objects.map(idOf)))) gone.add(id);
    const breathe = breather();
    for (const object of objects) {
      await this.#give(file, object);
      await breathe();
    }
    return true;
  }

  /** undefined: the file can't be used, and it has been said. */
  async #objectsOf(file: string): Promise<readonly ManifestObject[] | undefined> {
    try {
      return lastOfEach(
        await readManifest(file, await readFile(file), this.#specs, this.#onReport),
        file,
        this.#onReport,
      );
    } catch (error) {
      const { line, column } = error instanceof ManifestSyntaxError ? error : { line: undefined, column: undefined };
      this.#onReport({
        type: "badFile",
        file,
        ...(line === undefined ? {} : { line }),
        ...(column === undefined ? {} : { column }),
        error: errorText(error),
        kept: this.#ownership.count(file),
      });
      return undefined;
    }
  }

  async #give(file: string, object: ManifestObject): Promise<void> {
    const id = idOf(object);
    this.#reportDuplicate(id);
    if (this.#ownership.winner(id) !== file) return;
    this.#givenFrom.set(id, file);
    await this.#to.get(object.resource)?.upsert(object.key, object.version, object.raw);
  }

  #reportDuplicate(id: ObjectId): void {
    const holders = this.#ownership.holders(id);
    const used = holders.at(-1);
    if (used === undefined) return;
    const { resource, key } = partsOf(id);
    for (const ignored of holders.slice(0, -1)) {
      const text = `${id}\n${used}\n${ignored}`;
      if (!this.#known.has(text)) this.#onReport({ type: "duplicate", resource, key, used, ignored });
      this.#known.add(text);
    }
  }

  #drop(file: string, gone: Set<ObjectId>): void {
    this.#read.delete(file);
    for (const id of this.#ownership.replace(file, new Set())) gone.add(id);
  }

  /** What a file no longer holds is another file's now, or gone. Objects aren't kept here, so the other file is read again. */
  async #settle(gone: ReadonlySet<ObjectId>): Promise<void> {
    const again = new Set<string>();
    for (const id of gone) {
      const winner = this.#ownership.winner(id);
      if (winner === undefined) await this.#remove(id);
      else if (this.#givenFrom.get(id) !== winner) again.add(winner);
    }
    for (const file of again) if (!(await this.#take(file, new Set()))) this.#read.delete(file);
  }

  async #remove(id: ObjectId): Promise<void> {
    this.#givenFrom.delete(id);
    const { resource, key } = partsOf(id);
    await this.#to.get(resource)?.remove(key);
  }
}

/** Of objects that stand in the file more than once the last one. */
function lastOfEach(objects: readonly ManifestObject[], file: string, onReport: OnReport): readonly ManifestObject[] {
  const byId = new Map(objects.map((object) => [idOf(object), object]));
  if (byId.size === objects.length) return objects;
  const seen = new Set<ObjectId>();
  for (const { resource, key } of objects) {
    const id = `${resource} ${key}`;
    if (seen.has(id)) onReport({ type: "duplicate", resource, key, used: file, ignored: file });
    seen.add(id);
  }
  return [...byId.values()];
}

function idOf({ resource, key }: Pick<ManifestObject, "resource" | "key">): ObjectId {
  return `${resource} ${key}`;
}

function partsOf(id: ObjectId): { resource: ResourceName; key: ObjectKey } {
  const space = id.indexOf(" ");
  // Made by idOf alone.
  return { resource: id.slice(0, space) as ResourceName, key: id.slice(space + 1) as ObjectKey };
}

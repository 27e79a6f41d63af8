import { errorText, slices } from "@fairlead/base";
import type { ObjectKey, ResourceName } from "../change.ts";
import type { Publisher } from "../publisher.ts";
import type { FileReport, OnReport } from "../report.ts";
import type { ResourceSpec } from "../resources.ts";
import { type Contents, contentsOf, idOf } from "./contents.ts";
import { type Definition, definedBy, definitionsIn, hasNoKind } from "./definitions.ts";
import { type ObjectId, Ownership } from "./ownership.ts";
import { type ManifestObject, versionOf } from "./read.ts";
import { readBounded } from "./read-file.ts";
import { type FileState, fileState } from "./scan.ts";
import { ManifestSyntaxError } from "./syntax-error.ts";

/** A file that changes all the time is waited for this many looks; then the others get their turn. */
const PATIENCE = 20;

/** The consumer's side of one pass over the files, and what the files held at the last one. */
export class ManifestFollower {
  readonly #specs: readonly ResourceSpec[];
  /** As the files define their kinds. */
  #defined: readonly ResourceSpec[];
  readonly #definitions = new Map<string, readonly Definition[]>();
  readonly #to: ReadonlyMap<ResourceName, Publisher>;
  readonly #onReport: OnReport;
  readonly #ownership = new Ownership();
  /** State of each file as last read, well or not. */
  readonly #read = new Map<string, string>();
  /** From which file an object was last given. */
  readonly #givenFrom = new Map<ObjectId, string>();
  /** What files no longer hold: another file's, or to be removed. */
  readonly #gone = new Set<ObjectId>();
  /** Passes in a row that found a file changing. */
  #postponed = 0;
  /** Duplicates that were reported. */
  readonly #known = new Set<string>();

  constructor(specs: readonly ResourceSpec[], to: ReadonlyMap<ResourceName, Publisher>, onReport: OnReport) {
    this.#specs = specs;
    this.#defined = specs;
    this.#to = to;
    this.#onReport = onReport;
  }

  get objects(): number {
    return this.#ownership.total();
  }

  /**
   * Takes in what has changed in the files; nothing that only moved from one file to another is deleted on the way.
   *
   * @param files in the order of their names
   * @returns true: a file changed just before or while it was read, so look again soon
   */
  async pass(files: ReadonlyMap<string, FileState>): Promise<boolean> {
    const patient = this.#postponed < PATIENCE;
    let unsteady = !(await this.#readChanged(files, patient));
    this.#postponed = unsteady ? this.#postponed + 1 : 0;
    if (unsteady && patient) return true;
    for (const file of [...this.#read.keys()].filter((known) => !files.has(known))) this.#drop(file);
    if (this.#defineAnew(files)) unsteady = !(await this.#readChanged(files, false)) || unsteady;
    await this.#applyChanges();
    for (const publisher of this.#to.values()) await publisher.complete();
    return unsteady;
  }

  /**
   * @param patient none is read while one is just being changed
   * @returns false: not all of them could be read yet
   */
  async #readChanged(files: ReadonlyMap<string, FileState>, patient: boolean): Promise<boolean> {
    // The last file wins, so it comes first: then each object is given once.
    const changed = [...files].reverse().filter(([file, { text }]) => this.#read.get(file) !== text);
    if (patient && changed.some(([, { fresh }]) => fresh)) return false;
    let all = true;
    for (const [file, { text }] of changed) {
      const taken = await this.#take(file);
      if (taken) this.#read.set(file, text);
      all &&= taken;
    }
    return all;
  }

  async #take(file: string): Promise<boolean> {
    const before = await fileState(file, Date.now);
    if (before === undefined) return false;
    const contents = await this.#contentsOf(file);
    if ((await fileState(file, Date.now))?.text !== before.text) return false;
    if (contents === undefined) return true;
    for (const id of this.#ownership.replace(file, contents.ids)) this.#gone.add(id);
    const yielding = slices();
    for await (const object of contents.objects) {
      await this.#give(file, object);
      await yielding();
    }
    return true;
  }

  /** @returns whether objects have other kinds than those with which files were read: all must be read again */
  #defineAnew(files: ReadonlyMap<string, FileState>): boolean {
    const before = this.#defined;
    this.#defined = definedBy(
      Array.from(files.keys()).flatMap((file) => this.#definitions.get(file) ?? []),
      this.#specs,
    );
    const same = this.#defined.every(
      ({ kind, namespaced }, at) => kind === before[at]?.kind && namespaced === before[at].namespaced,
    );
    if (!same) this.#read.clear();
    return !same;
  }

  /** undefined: the file can't be used, and it has been said. */
  async #contentsOf(file: string): Promise<Contents | undefined> {
    try {
      const content = await readBounded(file);
      if (this.#specs.some(hasNoKind)) this.#definitions.set(file, await definitionsIn(file, content));
      return await contentsOf(file, content, this.#defined, this.#onReport);
    } catch (error) {
      this.#onReport(badFile(file, error, this.#ownership.count(file)));
      return undefined;
    }
  }

  async #give(file: string, object: ManifestObject): Promise<void> {
    const id = idOf(object);
    this.#reportDuplicate(id);
    if (this.#ownership.winner(id) !== file) return;
    this.#givenFrom.set(id, file);
    await this.#to.get(object.resource)?.upsert(object.key, versionOf(object), object.raw);
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

  #drop(file: string): void {
    this.#read.delete(file);
    this.#definitions.delete(file);
    for (const id of this.#ownership.replace(file, new Set())) this.#gone.add(id);
  }

  /**
   * What a file no longer holds is another file's now, or gone. Objects aren't kept here, so the other file is read
   * again.
   */
  async #applyChanges(): Promise<void> {
    const again = new Set<string>();
    for (const id of this.#gone) {
      const winner = this.#ownership.winner(id);
      if (winner === undefined) await this.#remove(id);
      else if (this.#givenFrom.get(id) !== winner) again.add(winner);
    }
    this.#gone.clear();
    for (const file of again) if (!(await this.#take(file))) this.#read.set(file, "");
  }

  async #remove(id: ObjectId): Promise<void> {
    this.#givenFrom.delete(id);
    const { resource, key } = partsOf(id);
    await this.#to.get(resource)?.remove(key);
  }
}

function badFile(file: string, error: unknown, kept: number): FileReport {
  const { line, column } = error instanceof ManifestSyntaxError ? error : { line: undefined, column: undefined };
  const where = { ...(line === undefined ? {} : { line }), ...(column === undefined ? {} : { column }) };
  return { type: "badFile", file, ...where, error: errorText(error), kept };
}

function partsOf(id: ObjectId): { resource: ResourceName; key: ObjectKey } {
  const space = id.indexOf(" ");
  // Made by idOf only.
  return { resource: id.slice(0, space) as ResourceName, key: id.slice(space + 1) as ObjectKey };
}

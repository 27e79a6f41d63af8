/** Manifest files as a source of objects that follows their changes. */

import { type Clock, errorText, sleep, slices, systemClock } from "@fairlead/base";
import { watch } from "chokidar";
import type { ObjectKey, ObjectSource, ResourceName } from "../change.ts";
import { type Publisher, publishersOf, runTogether } from "../publisher.ts";
import type { FileReport, OnReport } from "../report.ts";
import { type ResourceSpec, resourceSpecs, type Selection } from "../resources.ts";
import { type FileState, fileState, readBounded, type Scan, scan } from "./files.ts";
import { ManifestSyntaxError } from "./parse.ts";
import {
  type Definition,
  definedBy,
  definitionsIn,
  hasNoKind,
  type ManifestObject,
  readManifest,
  versionOf,
} from "./read.ts";

/** Nodes but the own one are ignored. */
export interface ManifestsSourceOptions extends Selection {
  /**
   * A YAML or JSON file, or a folder of them (*.yaml, *.yml, *.json; not its subfolders, no hidden files). An empty
   * folder is an empty cluster. A path that isn't there yet is waited for: nothing is complete until then. A file that
   * is removed takes its objects with it; when the folder itself vanishes, its objects stay until it is back.
   */
  readonly path: string;
  /** Gets what an operator may want to read of the files. */
  readonly onReport?: OnReport;
  /** For tests. */
  readonly clock?: Clock;
}

/** Follows manifest files as if an API server held them. Does nothing before `run`. */
export function createManifestsSource(options: ManifestsSourceOptions): ObjectSource {
  const { path, clock = systemClock, onReport = () => {} } = options;
  return {
    run: async (subscriptions, signal) => {
      const specs = resourceSpecs(options, subscriptions.others);
      const follower = new ManifestFollower(specs, publishersOf(subscriptions, onReport), onReport);
      const trigger = fileTrigger(path, clock);
      const part = (stop: AbortSignal) => follow(path, follower, trigger, clock, onReport, stop);
      try {
        await runTogether([part], signal);
      } finally {
        await trigger.close();
      }
    },
  };
}

/** Text that names an object among all resources. */
type ObjectId = string;

/** A file that changes all the time is waited for this many looks; then the others get their turn. */
const PATIENCE = 20;

/** What a file holds, all of which can be read. */
interface Contents {
  readonly ids: ReadonlySet<ObjectId>;
  /** Of objects that stand in the file more than once the last one. */
  readonly objects: AsyncIterable<ManifestObject> | Iterable<ManifestObject>;
}

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

/** Writers make several changes in a row: this long after the first sign the files are looked at. */
const DEBOUNCE = 50;
const REPORT_EVERY = 60_000;

/** Says when the files may have changed; what has changed is found by looking. */
interface Trigger {
  /** Resolves after the next sign of a change, or at once if there was one since the last call, or when aborted. */
  next(signal: AbortSignal): Promise<void>;
  /** A sign from inside. */
  pull(): void;
  close(): Promise<void>;
}

async function follow(
  path: string,
  follower: ManifestFollower,
  trigger: Trigger,
  clock: Clock,
  onReport: OnReport,
  signal: AbortSignal,
): Promise<void> {
  const waiting = waitingReports(path, clock, onReport);
  let wasFile = false;
  while (!signal.aborted) {
    const found = await scan(path, Date.now);
    const files = filesOf(found, wasFile);
    waiting(files === undefined ? { error: errorOf(found), kept: follower.objects } : undefined);
    if (files !== undefined && (await follower.pass(files))) trigger.pull();
    wasFile ||= found.type === "files" && !found.isFolder;
    await trigger.next(signal);
    await sleep(clock, DEBOUNCE, signal);
  }
}

/** undefined: what the files are can't be known now. */
function filesOf(found: Scan, wasFile: boolean): ReadonlyMap<string, FileState> | undefined {
  if (found.type === "files") return found.files;
  return found.type === "noFile" && wasFile ? new Map() : undefined;
}

function errorOf(found: Scan): string {
  return found.type === "files" ? "" : found.error;
}

/** At once and then once a minute, for as long as there is something to wait for. */
function waitingReports(path: string, clock: Clock, onReport: OnReport) {
  let last = Number.NEGATIVE_INFINITY;
  return (problem: { readonly error: string; readonly kept: number } | undefined) => {
    if (problem === undefined) last = Number.NEGATIVE_INFINITY;
    else if (clock.monotonic() - last >= REPORT_EVERY) {
      last = clock.monotonic();
      onReport({ type: "waiting", path, ...problem });
    }
  };
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

/**
 * Where the kernel's notifications fail (network file systems, links out of the folder): how often to scan all the
 * same.
 */
const SCAN_EVERY = 10_000;

/**
 * Signs come from chokidar and every ten seconds. Its own account of files and events is not used: it does not follow
 * the swapped links of a mounted ConfigMap, and an editor's or an atomic write is several events of one change.
 */
function fileTrigger(path: string, clock: Clock): Trigger {
  const watcher = watch(path, { ignoreInitial: true, depth: 0 });
  let pulled = false;
  let wake = () => {};
  const pull = () => {
    pulled = true;
    wake();
  };
  let cancel = () => {};
  const scan = () => {
    pull();
    cancel = clock.after(SCAN_EVERY, scan);
  };
  cancel = clock.after(SCAN_EVERY, scan);
  watcher.on("all", pull).on("raw", pull).on("ready", pull).on("error", pull);

  const next = async (signal: AbortSignal) => {
    signal.addEventListener("abort", pull);
    if (!pulled && !signal.aborted) await new Promise<void>((resolve) => (wake = resolve));
    signal.removeEventListener("abort", pull);
    pulled = false;
  };
  const close = () => {
    cancel();
    return watcher.close();
  };
  return { next, pull, close };
}

/** The objects of longer files are not kept between the first reading, which says that all are good, and the second. */
const KEPT_UP_TO = 2 ** 20;

function idOf({ resource, key }: Pick<ManifestObject, "resource" | "key">): ObjectId {
  return `${resource} ${key}`;
}

/** @throws ManifestSyntaxError nothing of it can be used */
async function contentsOf(
  file: string,
  content: Uint8Array,
  specs: readonly ResourceSpec[],
  onReport: OnReport,
): Promise<Contents> {
  const kept: ManifestObject[] | undefined = content.length <= KEPT_UP_TO ? [] : undefined;
  const last = new Map<ObjectId, number>();
  let index = 0;
  for await (const object of readManifest(file, content, specs, onReport)) {
    const { resource, key } = object;
    const id = idOf(object);
    if (last.has(id)) onReport({ type: "duplicate", resource, key, used: file, ignored: file });
    last.set(id, index++);
    kept?.push(object);
  }
  const objects = kept ?? readManifest(file, content, specs, () => {});
  return { ids: new Set(last.keys()), objects: last.size === index ? objects : lastOfEach(objects, last) };
}

async function* lastOfEach(
  objects: Contents["objects"],
  last: ReadonlyMap<ObjectId, number>,
): AsyncGenerator<ManifestObject> {
  let index = 0;
  for await (const object of objects) if (last.get(idOf(object)) === index++) yield object;
}

/** Which files hold which object; of several, the last in the order of names has it. */
class Ownership {
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

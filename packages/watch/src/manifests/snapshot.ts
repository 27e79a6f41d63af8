/** Manifest files as a source that reads them once. */

import { readFile } from "node:fs/promises";
import { errorText, objectAt, type RawObject, textAt } from "@fairlead/base";
import type { ObjectSource } from "../change.ts";
import { publishersOf } from "../publisher.ts";
import type { OnReport } from "../report.ts";
import { type ResourceSpec, resourceSpecs, type Selection } from "../resources.ts";
import { scan } from "./files.ts";
import { ManifestSyntaxError } from "./parse.ts";
import { type Definition, definedBy, definitionsIn, hasNoKind, type ManifestObject, readManifest } from "./read.ts";

/** Nodes but the own one are ignored. */
export interface ManifestsSnapshotOptions extends Selection {
  /** Files and folders as for `createManifestsSource`, and `-`: what `readStandardInput` gives. */
  readonly paths: readonly string[];
  /** Needed where a path is `-`. */
  readonly readStandardInput?: () => Promise<Uint8Array>;
  /** Gets what an operator may want to read of the files. */
  readonly onReport?: OnReport;
  /** Gets the names of the Nodes that are ignored. */
  readonly onOtherNode?: (name: string) => void;
  /** Gets the contents of all files, in their order, and gives what is read in place of each. */
  readonly prepare?: (contents: readonly Uint8Array[]) => readonly Uint8Array[];
}

/**
 * Gives the objects of manifest files once, as they are now, and ends. Of an object that stands there more than once
 * the last one counts, in the order of paths and of file names. Its `run` rejects when anything cannot be read.
 */
export function createManifestsSnapshot(options: ManifestsSnapshotOptions): ObjectSource {
  const { onReport = () => {}, onOtherNode = () => {} } = options;
  return {
    run: async (subscriptions) => {
      const publishers = publishersOf(subscriptions, onReport);
      const specs = resourceSpecs(options, subscriptions.others)
        .filter(({ name }) => publishers.has(name))
        .map((spec) => (spec.name === "node" ? reportingOthers(spec, onOtherNode) : spec));
      for (const { resource, key, raw } of await objectsOf(options, specs, onReport)) {
        // Each comes once, whatever its version.
        await publishers.get(resource)?.upsert(key, "", raw);
      }
      for (const publisher of publishers.values()) await publisher.complete();
    },
  };
}

/** All that comes, in its order. */
export async function collected<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** How `-` is called in reports and errors. */
const STANDARD_INPUT = "standard input";

/** The same selection, which reports what it leaves out. */
function reportingOthers(spec: ResourceSpec, onOther: (name: string) => void): ResourceSpec {
  const selects = (raw: RawObject): boolean => {
    const selected = spec.selects(raw);
    const name = textAt(objectAt(raw, "metadata"), "name");
    if (!selected && name !== undefined) onOther(name);
    return selected;
  };
  return { ...spec, selects };
}

async function objectsOf(
  options: ManifestsSnapshotOptions,
  specs: readonly ResourceSpec[],
  onReport: OnReport,
): Promise<Iterable<ManifestObject>> {
  const found = new Map<string, { readonly object: ManifestObject; readonly file: string }>();
  const files = await preparedFiles(options);
  const defined = definedBy(await definitionsOf(files, specs), specs);
  for (const { file, content } of files) {
    for (const object of await placed(file, () => collected(readManifest(file, content, defined, onReport)))) {
      const { resource, key } = object;
      const id = `${resource} ${key}`;
      const before = found.get(id);
      if (before !== undefined) onReport({ type: "duplicate", resource, key, used: file, ignored: before.file });
      found.set(id, { object, file });
    }
  }
  return Array.from(found.values(), ({ object }) => object);
}

async function definitionsOf(
  files: readonly ManifestFile[],
  specs: readonly ResourceSpec[],
): Promise<readonly Definition[]> {
  const found: Definition[] = [];
  if (!specs.some(hasNoKind)) return found;
  for (const { file, content } of files) found.push(...(await placed(file, () => definitionsIn(file, content))));
  return found;
}

/** @throws Error naming the file and, where it is known, line and column */
async function placed<T>(file: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof ManifestSyntaxError)) throw error;
    const { line, column, message } = error;
    const place = [file, line, column].filter((part) => part !== undefined).join(":");
    throw new Error(`${place}: ${message}`, { cause: error });
  }
}

interface ManifestFile {
  readonly file: string;
  readonly content: Uint8Array;
}

async function preparedFiles(options: ManifestsSnapshotOptions): Promise<readonly ManifestFile[]> {
  const files: ManifestFile[] = [];
  for (const path of options.paths) files.push(...(await filesAt(path, options)));
  const { prepare = (contents: readonly Uint8Array[]) => contents } = options;
  const contents = prepare(files.map(({ content }) => content));
  return files.map(({ file, content }, at) => ({ file, content: contents[at] ?? content }));
}

/** @throws Error naming the path */
async function filesAt(path: string, { readStandardInput }: ManifestsSnapshotOptions): Promise<ManifestFile[]> {
  if (path === "-") {
    if (readStandardInput === undefined) throw new Error("standard input is not available");
    return [{ file: STANDARD_INPUT, content: await readStandardInput() }];
  }
  const there = await scan(path, Date.now);
  if (there.type !== "files") throw new Error(there.error.startsWith(path) ? there.error : `${path}: ${there.error}`);
  const files: ManifestFile[] = [];
  for (const file of there.files.keys()) files.push({ file, content: await contentOf(file) });
  return files;
}

async function contentOf(file: string): Promise<Uint8Array> {
  try {
    return await readFile(file);
  } catch (error) {
    throw new Error(`${file}: ${errorText(error)}`, { cause: error });
  }
}

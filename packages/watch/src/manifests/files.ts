/** Which files of a folder are manifests, and their content up to a bound. */

import { open, readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { errorCode, errorText } from "@fairlead/base";
import { MAX_FILE_BYTES, mebibytes } from "../limits.ts";

/** Distinguishes two states of a file without reading it. */
export interface FileState {
  readonly text: string;
  /**
   * Changed so lately that another change could leave the text the same, since file systems count time in steps of some
   * milliseconds: too early to read it.
   */
  readonly fresh: boolean;
}

/** What is at the manifest path now. */
export type Scan =
  /** Files in the order of their names. */
  | { readonly type: "files"; readonly isFolder: boolean; readonly files: ReadonlyMap<string, FileState> }
  /** No such file in an existing folder. */
  | { readonly type: "noFile"; readonly error: string }
  /** Neither it nor its folder, or no permission. */
  | { readonly type: "unreadable"; readonly error: string };

/** A device, a pipe or a socket has no end, or none that could be waited for. */
const NOT_A_FILE = "is neither a file nor a folder";

/** Why the path can never hold manifests, to be read after it; undefined: it can, or is not there yet. */
export async function whyNoManifests(path: string): Promise<string | undefined> {
  const found = await stat(path).catch(() => undefined);
  return found === undefined || found.isDirectory() || found.isFile() ? undefined : NOT_A_FILE;
}

/**
 * Never rejects. Links are followed, so that a ConfigMap's swapped `..data` folder shows as changed files.
 *
 * @param timeOfDay milliseconds since the epoch, as the file system has it
 */
export async function scan(path: string, timeOfDay: () => number): Promise<Scan> {
  try {
    const found = await stat(path, { bigint: true });
    if (found.isDirectory()) return { type: "files", isFolder: true, files: await filesIn(path, timeOfDay) };
    if (!found.isFile()) return { type: "unreadable", error: `${path} ${NOT_A_FILE}` };
    return { type: "files", isFolder: false, files: new Map([[path, stateOf(found, timeOfDay)]]) };
  } catch (error) {
    const parentIsThere = await stat(dirname(path)).then(
      () => true,
      () => false,
    );
    const missing = parentIsThere && errorCode(error) === "ENOENT";
    return { type: missing ? "noFile" : "unreadable", error: errorText(error) };
  }
}

/** Of one file; undefined when it is not there or not a file. */
export async function fileState(file: string, timeOfDay: () => number): Promise<FileState | undefined> {
  try {
    const found = await stat(file, { bigint: true });
    return found.isFile() ? stateOf(found, timeOfDay) : undefined;
  } catch (error) {
    // It may be there without being accessible: reading it will say so.
    return errorCode(error) === "ENOENT" ? undefined : { text: errorText(error), fresh: false };
  }
}

const AT_ONCE = 2 ** 20;

/**
 * A file's content.
 *
 * @throws Error it can't be read, or is larger than `maxFileBytes`, however large it was said to be
 */
export async function readBounded(file: string): Promise<Uint8Array> {
  const handle = await open(file);
  try {
    const { size } = await handle.stat();
    if (size > MAX_FILE_BYTES) throw tooLarge(mebibytes(size));
    const parts: Uint8Array[] = [];
    for (let total = 0; ; ) {
      const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafeSlow(AT_ONCE), 0, AT_ONCE);
      if (bytesRead === 0) return parts.length === 1 ? (parts[0] ?? buffer) : Buffer.concat(parts);
      total += bytesRead;
      if (total > MAX_FILE_BYTES) throw tooLarge("growing");
      parts.push(buffer.subarray(0, bytesRead));
    }
  } finally {
    await handle.close();
  }
}

async function filesIn(folder: string, timeOfDay: () => number): Promise<ReadonlyMap<string, FileState>> {
  const files = new Map<string, FileState>();
  for (const name of (await readdir(folder)).filter(isManifestName).sort()) {
    const file = join(folder, name);
    const is = await fileState(file, timeOfDay);
    if (is !== undefined) files.set(file, is);
  }
  return files;
}

/** Hidden files are editors' and ConfigMaps' own business. */
function isManifestName(name: string): boolean {
  return !name.startsWith(".") && /\.(ya?ml|json)$/.test(name);
}

/** In nanoseconds; the coarsest clock of Linux' file systems in use ticks every 10 ms. */
const FRESH_FOR = 20_000_000n;

function stateOf(
  stats: { ino: bigint; size: bigint; mtimeNs: bigint; ctimeNs: bigint },
  timeOfDay: () => number,
): FileState {
  const text = `${stats.ino}/${stats.size}/${stats.mtimeNs}/${stats.ctimeNs}`;
  const age = BigInt(Math.trunc(timeOfDay())) * 1_000_000n - stats.ctimeNs;
  // A time in the future is a clock that was set back, not a change of just now.
  return { text, fresh: age < FRESH_FOR && age > -FRESH_FOR };
}

function tooLarge(size: string): Error {
  return new Error(`the file is ${size}; a manifest file may have ${mebibytes(MAX_FILE_BYTES)}: split it`);
}

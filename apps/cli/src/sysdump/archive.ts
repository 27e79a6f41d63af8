import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { createGunzip, gzip } from "node:zlib";
import { errorText } from "@fairlead/base";
import { extract, pack } from "tar-stream";
import { CommandFailure } from "../frame/errors.ts";

/** What ends a tar: two empty blocks. */
const END = Buffer.alloc(1024);

/** What is read of an archive: what comes from elsewhere may be made to be large. */
interface ArchiveLimits {
  /** Bytes, unpacked, headers included. */
  readonly bytes: number;
  /** Entries: a node has six. */
  readonly entries: number;
}

const LIMITS: ArchiveLimits = { bytes: 1 << 30, entries: 100_000 };

const zip = promisify(gzip);

/**
 * A tar.gz that never gets larger than it may. Each file is a gzip member of its own, so that its size is known
 * before it is taken (RFC 1952 allows members one behind the other).
 */
export class ArchiveWriter {
  readonly #members: Buffer[] = [];
  readonly #limit: number;
  readonly #folder: string;
  readonly #time: Date;
  #bytes = 0;

  /**
   * @param folder in which all files are
   * @param limit bytes of the archive
   */
  constructor(folder: string, time: Date, limit: number) {
    this.#folder = folder;
    this.#time = time;
    this.#limit = limit;
  }

  /** @returns false: there is no room for it anymore, and it is left out */
  async add(path: string, content: string): Promise<boolean> {
    const member = await this.#member(path, content);
    if (this.#bytes + member.length > this.#limit) return false;
    this.#bytes += member.length;
    this.#members.push(member);
    return true;
  }

  /** @param first files for which there is always room */
  async end(first: Readonly<Record<string, string>>): Promise<Buffer> {
    const members = await Promise.all(Object.entries(first).map(([path, content]) => this.#member(path, content)));
    return Buffer.concat([...members, ...this.#members, await zip(END)]);
  }

  async #member(path: string, content: string): Promise<Buffer> {
    const packed = pack();
    packed.entry({ name: `${this.#folder}/${path}`, mtime: this.#time, mode: 0o600 }, content);
    packed.finalize();
    const whole = await buffer(packed);
    return zip(whole.subarray(0, whole.length - END.length));
  }
}

/**
 * The files of an archive by their paths in its folder. Nothing is written to disk; links and devices are passed over.
 */
export async function readArchive(
  file: string,
  content: Uint8Array,
  limits: ArchiveLimits = LIMITS,
): Promise<ReadonlyMap<string, string>> {
  try {
    const files = new Map<string, string>();
    const entries = extract();
    const unpacked = pipeline(Readable.from([content]), createGunzip(), bounded(limits.bytes), entries);
    await Promise.all([unpacked, keep(entries, files, limits.entries)]);
    return files;
  } catch (error) {
    throw new CommandFailure(`--sysdump=${file}: not an archive of fairlead sysdump: ${errorText(error)}`, {
      cause: error,
    });
  }
}

async function keep(entries: ReturnType<typeof extract>, files: Map<string, string>, most: number): Promise<void> {
  let count = 0;
  for await (const entry of entries) {
    if (++count > most) throw new Error(`it has more than ${most} entries`);
    const { type, name } = entry.header;
    const path = name.slice(name.indexOf("/") + 1);
    if (type !== "file") {
      entry.resume();
      continue;
    }
    if (files.has(path)) throw new Error(`it has ${path} twice`);
    files.set(path, (await buffer(entry)).toString("utf8"));
  }
}

function bounded(most: number) {
  return async function* (pieces: AsyncIterable<Uint8Array>) {
    let bytes = 0;
    for await (const piece of pieces) {
      bytes += piece.length;
      if (bytes > most) throw new Error(`it unpacks to more than ${most} bytes`);
      yield piece;
    }
  };
}

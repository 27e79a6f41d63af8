import { buffer } from "node:stream/consumers";
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { errorText } from "@fairlead/base";
import { extract, pack } from "tar-stream";
import { CommandFailure } from "../frame/errors.ts";

/** What ends a tar: two empty blocks. */
const END = Buffer.alloc(1024);

/** Bytes of all files of an archive that is read: what comes from elsewhere may be made to be large. */
const MOST_UNPACKED = 1 << 30;

const zip = promisify(gzip);
const unzip = promisify(gunzip);

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
 * The files of an archive by their paths in its folder.
 *
 * @throws CommandFailure for what is no such archive, or too large
 */
export async function readArchive(file: string, content: Uint8Array): Promise<ReadonlyMap<string, string>> {
  try {
    const files = new Map<string, string>();
    const entries = extract();
    entries.end(await unzip(content, { maxOutputLength: MOST_UNPACKED }));
    for await (const entry of entries) {
      const { type, name } = entry.header;
      const text = (await buffer(entry)).toString("utf8");
      if (type === "file") files.set(name.slice(name.indexOf("/") + 1), text);
    }
    return files;
  } catch (error) {
    throw new CommandFailure(`--sysdump=${file}: not an archive of fairlead sysdump: ${errorText(error)}`, {
      cause: error,
    });
  }
}

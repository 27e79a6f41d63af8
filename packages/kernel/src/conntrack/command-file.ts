import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A container whose root file system is read-only still has the first of them. */
const FOLDERS = ["/dev/shm", tmpdir()];

/**
 * Calls `use` with the path of a file that holds the text, and removes it afterwards. For programs that open /dev/stdin
 * by its name, which fails on the sockets that Node gives its child processes as pipes.
 */
export async function withCommandFile<T>(text: Iterable<string>, use: (path: string) => Promise<T>): Promise<T> {
  const folder = await makeFolder();
  try {
    const path = join(folder, "commands");
    await writeFile(path, text, { mode: 0o600, flag: "wx" });
    return await use(path);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** @throws the last folder's error where none of them may be written to */
async function makeFolder(): Promise<string> {
  let last: unknown;
  for (const folder of FOLDERS) {
    try {
      return await mkdtemp(join(folder, "fairlead-"));
    } catch (error) {
      last = error;
    }
  }
  throw last;
}

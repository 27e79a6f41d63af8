/** Node for Windows, as Wine 8 can run it. */

import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { installWindowsNode } from "@fairlead/deploy/image";

const HIDDEN = "\0VirtualAlloc2\0";
const BY = "\0VirtualAllocX\0";

/**
 * Wine 8 has a VirtualAlloc2 that cannot reserve placeholders, and V8 takes for granted that it can. A copy of node.exe
 * that does not find the function does without, as on old versions of Windows.
 */
export async function nodeForWine(cache: string): Promise<string> {
  const file = join(cache, "node-for-wine.exe");
  const there = await readFile(file).catch(() => undefined);
  if (there !== undefined) return file;
  await mkdir(cache, { recursive: true });
  const program = await readFile(await installWindowsNode(cache));
  const at = program.indexOf(HIDDEN);
  if (at === -1 || program.indexOf(HIDDEN, at + 1) !== -1) throw new Error("node.exe: VirtualAlloc2 is not named once");
  program.write(BY, at, "latin1");
  await writeFile(`${file}.new`, program, { mode: 0o755 });
  await rename(`${file}.new`, file);
  return file;
}

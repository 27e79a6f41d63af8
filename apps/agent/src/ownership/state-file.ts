import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { isTooDeep } from "@fairlead/base";

/**
 * What outlives an agent in its state folder: who owned which service, the networks that were learned last, and whether
 * the kernel passed the test of the fast path.
 */
const FILES = { memory: "ownership.json", networks: "networks.json", fastPath: "fast-path.json" } as const;

/** Where it is kept; undefined: nowhere, as there is no folder. */
export function stateFile(stateDir: string, what: keyof typeof FILES): string | undefined {
  return stateDir === "" ? undefined : join(stateDir, FILES[what]);
}

/** Some 200,000 services of the longest names; JSON.parse takes 40 to 50 bytes of memory for each byte of nesting. */
const MOST_MIB = 32;
/** What is written has five levels. */
const MOST_LEVELS = 20;

/**
 * Reads a file of the state folder. Opened without waiting, as a FIFO would hold up the start for good.
 *
 * @throws Error with the code of open(2), or saying that it is not a regular file, too large or nested too deep for
 * what this agent writes
 */
export async function readStateFile(path: string): Promise<string> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw new Error("it is not a regular file");
    const mib = stat.size / 2 ** 20;
    if (mib > MOST_MIB) throw new Error(`it is ${Math.ceil(mib)} MiB, a state file has ${MOST_MIB} MiB at most`);
    const text = await file.readFile("utf8");
    if (isTooDeep(text, MOST_LEVELS)) throw new Error(`it is nested deeper than ${MOST_LEVELS} levels`);
    return text;
  } finally {
    await file.close();
  }
}

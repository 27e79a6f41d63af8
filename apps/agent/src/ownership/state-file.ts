import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";

/** What outlives an agent in its state folder: who owned which service, and the networks that were learnt last. */
const FILES = { memory: "ownership.json", networks: "networks.json" } as const;

/** Where it is kept; undefined: nowhere, as there is no folder. */
export function stateFile(stateDir: string, what: keyof typeof FILES): string | undefined {
  return stateDir === "" ? undefined : join(stateDir, FILES[what]);
}

/**
 * Reads a file of the state folder. Opened without waiting, as a FIFO would hold up the start for good.
 *
 * @throws Error with the code of open(2), or saying that it is not a regular file
 */
export async function readStateFile(path: string): Promise<string> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!(await file.stat()).isFile()) throw new Error("it is not a regular file");
    return await file.readFile("utf8");
  } finally {
    await file.close();
  }
}

import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RawObject } from "@fairlead/testkit";
import { stringify } from "yaml";
import { folderPrefix } from "../support/folder-prefix.ts";

/** A folder of its own for one agent: the objects that it follows, and its state. */
export interface AgentFolder {
  readonly path: string;
  /** The folder for `--manifests`. */
  readonly manifests: string;
  /** The folder for `--state-dir`. */
  readonly state: string;
  /** Puts the objects in place of those before, in one step. Gives the moment, in milliseconds since the epoch. */
  write(objects: readonly RawObject[]): Promise<number>;
  remove(): Promise<void>;
}

export async function agentFolder(objects: readonly RawObject[]): Promise<AgentFolder> {
  const path = await mkdtemp(join(tmpdir(), `${folderPrefix}-`));
  const manifests = join(path, "manifests");
  await mkdir(manifests);
  const write = async (next: readonly RawObject[]) => {
    const unseen = join(manifests, ".objects.yaml.new");
    await writeFile(unseen, next.map((object) => stringify(object)).join("---\n"));
    const at = performance.timeOrigin + performance.now();
    await rename(unseen, join(manifests, "objects.yaml"));
    return at;
  };
  await write(objects);
  return {
    path,
    manifests,
    state: join(path, "state"),
    write,
    remove: () => rm(path, { recursive: true, force: true }),
  };
}

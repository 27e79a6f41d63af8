import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { createRunner } from "@fairlead/kernel";
import { cacheFolder } from "../../../control-plane/program-set.ts";
import { isThere } from "../../../support/is-there.ts";
import type { Progress } from "../../provider.ts";
import { fingerprint } from "../programs.ts";

const PULL_MS = 15 * 60_000;

/**
 * Pulls images with this machine's own Docker, since that of a run reaches nobody.
 *
 * @returns an archive, kept by their names
 */
export async function pulled(names: readonly string[], progress: Progress): Promise<string> {
  const folder = cacheFolder("kind-published");
  const file = join(folder, `${fingerprint(names)}.tar`);
  if (await isThere(file)) return file;
  await mkdir(folder, { recursive: true });
  const runner = createRunner({ timeoutMs: PULL_MS });
  for (const name of names) {
    progress(`pulling ${name} (once)`);
    await runner.run(["docker", "pull", name]);
  }
  await runner.run(["docker", "save", "--output", file, ...names]);
  return file;
}

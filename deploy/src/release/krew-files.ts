import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Runner } from "@fairlead/kernel";
import { cliDir, repositoryDir } from "../paths.ts";
import { krewArchiveName, krewManifest } from "./krew.ts";

/**
 * Writes the archive and the manifest of the kubectl plugin. The same tree gives the same bytes: files are sorted, of
 * root and of one time.
 *
 * @param dir where they are written
 * @param cli folder of the built command line tool
 * @returns their paths
 */
export async function writeKrewFiles(
  runner: Runner,
  version: string,
  dir: string,
  cli = cliDir,
): Promise<readonly string[]> {
  await mkdir(dir, { recursive: true });
  const archive = join(dir, krewArchiveName(version));
  const reproducible = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
  const contents = ["-C", cli, "dist", "package.json", "-C", repositoryDir, "LICENSE"];
  await runner.run([
    "tar",
    "--create",
    "--use-compress-program=gzip -n",
    `--file=${archive}`,
    ...reproducible,
    ...contents,
  ]);
  const sha256 = createHash("sha256")
    .update(await readFile(archive))
    .digest("hex");
  const manifest = join(dir, "fairlead.yaml");
  await writeFile(manifest, krewManifest({ version, sha256 }));
  return [archive, manifest];
}

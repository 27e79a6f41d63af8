import { createHash } from "node:crypto";
import { chmod, cp, glob, mkdir, readFile, symlink } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Runner } from "@fairlead/kernel";
import { parse } from "yaml";

interface Platform {
  readonly uri: string;
  readonly sha256: string;
  readonly files: readonly { readonly from: string; readonly to: string }[];
  readonly bin: string;
}

/**
 * Installs a plugin as krew does: the archive of the manifest's platform by its sum, the files that the manifest
 * takes out of it, and a link by which kubectl finds the program.
 *
 * @param archive the file that the manifest's address leads to, once it is released
 * @param into an empty folder
 * @returns the program's path
 * @throws Error when the archive is not the one that the manifest names
 */
export async function installPlugin(runner: Runner, manifest: string, archive: string, into: string): Promise<string> {
  const { metadata, spec } = parse(await readFile(manifest, "utf8"));
  const { uri, sha256, files, bin }: Platform = spec.platforms[0];
  if (basename(uri) !== basename(archive))
    throw new Error(`${manifest}: names ${basename(uri)}, not ${basename(archive)}`);
  const sum = createHash("sha256")
    .update(await readFile(archive))
    .digest("hex");
  if (sum !== sha256) throw new Error(`${archive}: has the sum ${sum}, not ${sha256} as the manifest says`);
  const [unpacked, store, programs] = [join(into, "unpacked"), join(into, "store"), join(into, "bin")];
  for (const dir of [unpacked, store, programs]) await mkdir(dir, { recursive: true });
  await runner.run(["tar", "--extract", "--gzip", `--file=${archive}`, `--directory=${unpacked}`]);
  for (const { from, to } of files) {
    for await (const name of glob(from, { cwd: unpacked })) {
      await cp(join(unpacked, name), join(store, to, basename(name)), { recursive: true });
    }
  }
  await chmod(join(store, bin), 0o755);
  const program = join(programs, `kubectl-${metadata.name}`);
  await symlink(join(store, bin), program);
  return program;
}

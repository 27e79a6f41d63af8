import { chmod, copyFile, mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Runner } from "@fairlead/kernel";
import { repositoryDir } from "../paths.ts";
import { type Arch, nodePackage } from "./arch.ts";

/** Version of Node in the image: the one that the lock file has, with which the tests run. */
export async function nodeVersion(): Promise<string> {
  const manifest = createRequire(join(repositoryDir, "package.json")).resolve("nodejs/package.json");
  const { version } = JSON.parse(await readFile(manifest, "utf8"));
  return String(version);
}

/** Puts Node's binary, from the npm registry, into a folder; npm checks its integrity. */
export async function fillWithNode(runner: Runner, dir: string, arch: Arch, scratch: string): Promise<void> {
  const spec = `${nodePackage(arch)}@${await nodeVersion()}`;
  const { stdout } = await runner.run(["npm", "pack", "--silent", `--pack-destination=${scratch}`, spec], {
    timeoutMs: 300_000,
  });
  await runner.run(["tar", "-xzf", join(scratch, stdout.trim()), "-C", scratch, "--no-same-owner"]);
  const bin = join(dir, "usr/local/bin");
  const documents = join(dir, "usr/local/share/doc/node");
  for (const folder of [bin, documents]) await mkdir(folder, { recursive: true });
  await copyFile(join(scratch, "package/bin/node"), join(bin, "node"));
  await chmod(join(bin, "node"), 0o755);
  await copyFile(join(scratch, "package/LICENSE"), join(documents, "LICENSE"));
}

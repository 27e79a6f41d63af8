import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { folderPrefix } from "../support/folder-prefix.ts";
import { type InitSettings, initScript, MODULES_FOLDER } from "./init-script.ts";

/** A folder with what one boot takes. The guest sees it in the same place. */
export interface BootFolder {
  readonly path: string;
  [Symbol.asyncDispose](): Promise<void>;
}

export const INIT_FILE = "init";
export const PRELOAD_FILE = "xstate.so";

const SOURCE = fileURLToPath(new URL("xstate.c", import.meta.url));

export async function bootFolder(settings: Omit<InitSettings, "folder">): Promise<BootFolder> {
  const path = await mkdtemp(join(tmpdir(), `${folderPrefix}-uml-`));
  const remove = () => rm(path, { recursive: true, force: true });
  try {
    await Promise.all([
      execa("gcc", ["-O2", "-shared", "-fPIC", "-o", join(path, PRELOAD_FILE), SOURCE]),
      writeFile(join(path, INIT_FILE), initScript({ ...settings, folder: path }), { mode: 0o700 }),
      linkLegacyTools(join(path, "bin")),
      linkModules(join(path, "root")),
    ]);
    return { path, [Symbol.asyncDispose]: remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/**
 * Its nf_tables has no nat: there `iptables` must be the legacy one for every program that asks for it by that name.
 */
async function linkLegacyTools(bin: string): Promise<void> {
  await mkdir(bin);
  const tools = ["iptables", "ip6tables"].flatMap((tool) => ["", "-save", "-restore"].map((verb) => `${tool}${verb}`));
  await Promise.all(
    tools.map((tool) => symlink(`/usr/sbin/${tool.replace("tables", "tables-legacy")}`, join(bin, tool))),
  );
}

/** The root folder that modprobe takes its modules from. */
async function linkModules(root: string): Promise<void> {
  await mkdir(join(root, "lib", "modules"), { recursive: true });
  const versions = await readdir(MODULES_FOLDER);
  await Promise.all(
    versions.map((version) => symlink(join(MODULES_FOLDER, version), join(root, "lib", "modules", version))),
  );
}

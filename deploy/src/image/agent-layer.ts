import { chmod, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { INSPECTOR_OPTION } from "@fairlead/tooling/agent-node";
import { repositoryDir } from "../paths.ts";
import type { Bundle, Programs } from "../sbom/bundle.ts";
import { type Arch, isFor } from "./arch.ts";

/** The names that the image starts the agent by: its own, and the one that kube-proxy's manifests use. */
export const AGENT_NAMES = ["/usr/local/bin/fairlead-proxy", "/usr/local/bin/kube-proxy"] as const;

/** The controller of secondary networks' EndpointSlices. */
export const SLICES_NAME = "/usr/local/bin/fairlead-slices";

/** The command line tool, for those who look into a running container. */
export const CLI_NAME = "/usr/local/bin/fairlead";

/** Puts the programs for an architecture, their names and their licenses into a folder. */
export async function fillWithPrograms(
  dir: string,
  arch: Arch,
  { agent, cli }: Programs,
  notices: string,
): Promise<void> {
  await mkdir(join(dir, "usr/local/bin"), { recursive: true });
  await fillWithApp(dir, agent, { arch, folder: "fairlead", names: AGENT_NAMES });
  await chmod(join(dir, "usr/local/lib/fairlead/slices.js"), 0o755);
  await symlink("../lib/fairlead/slices.js", join(dir, SLICES_NAME));
  await fillWithApp(dir, cli, {
    arch,
    folder: "fairlead-cli",
    names: [CLI_NAME],
    compiledIn: "fairlead",
  });
  const documents = join(dir, "usr/local/share/doc/fairlead");
  await mkdir(documents, { recursive: true });
  await writeFile(join(documents, "LICENSE"), await readFile(join(repositoryDir, "LICENSE")));
  await writeFile(join(documents, "THIRD-PARTY-LICENSES.txt"), notices);
}

interface AppLayout {
  readonly arch: Arch;
  /** In /usr/local/lib. */
  readonly folder: string;
  /** What the app is started by. */
  readonly names: readonly string[];
  /** The folder of another app that has the same compiled code: it is there once. */
  readonly compiledIn?: string;
}

async function fillWithApp(dir: string, bundle: Bundle, place: AppLayout): Promise<void> {
  const { arch, folder, names, compiledIn } = place;
  const lib = join(dir, "usr/local/lib", folder);
  await mkdir(lib, { recursive: true });
  for (const [file, text] of bundle.files) await writeFile(join(lib, file), withInterpreter(text));
  for (const [file, code] of bundle.binaries) {
    if (!isFor(arch, file)) continue;
    if (compiledIn === undefined) await writeFile(join(lib, file), code);
    else await symlink(`../${compiledIn}/${file}`, join(lib, file));
  }
  await chmod(join(lib, "main.js"), 0o755);
  const { name, version, license } = bundle.app;
  await writeFile(
    join(lib, "package.json"),
    `${JSON.stringify({ name, version, license, type: "module" }, null, 2)}\n`,
  );
  for (const link of names) await symlink(`../lib/${folder}/main.js`, join(dir, link));
}

/**
 * The image has Node at one place and no `env`. The kernel hands on what follows the program as one argument, so that
 * there is room for one option of Node's.
 */
export function withInterpreter(bundle: string): string {
  return bundle.replace(/^#!.*$/m, `#!/usr/local/bin/node ${INSPECTOR_OPTION}`);
}

import { chmod, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { repositoryDir } from "../paths.ts";
import type { Bundle } from "../sbom/bundle.ts";

/** The names that the image starts the agent by: its own, and the one that kube-proxy's manifests use. */
export const AGENT_NAMES = ["/usr/local/bin/fairlead-proxy", "/usr/local/bin/kube-proxy"] as const;

/** Puts the agent's files, its names and its licences into a folder. */
export async function fillWithAgent(dir: string, bundle: Bundle, notices: string): Promise<void> {
  const lib = join(dir, "usr/local/lib/fairlead");
  const documents = join(dir, "usr/local/share/doc/fairlead");
  for (const folder of [lib, documents, join(dir, "usr/local/bin")]) await mkdir(folder, { recursive: true });
  for (const [file, text] of bundle.files) await writeFile(join(lib, file), withInterpreter(text));
  for (const [file, code] of bundle.binaries) await writeFile(join(lib, file), code);
  await chmod(join(lib, "main.js"), 0o755);
  const { name, version, license } = bundle.app;
  await writeFile(
    join(lib, "package.json"),
    `${JSON.stringify({ name, version, license, type: "module" }, null, 2)}\n`,
  );
  await writeFile(join(documents, "LICENSE"), await readFile(join(repositoryDir, "LICENSE")));
  await writeFile(join(documents, "THIRD-PARTY-LICENCES.txt"), notices);
  for (const link of AGENT_NAMES) await symlink("../lib/fairlead/main.js", join(dir, link));
}

/** The image has Node at one place and no `env`. */
export function withInterpreter(bundle: string): string {
  return bundle.replace(/^#!.*$/m, "#!/usr/local/bin/node");
}

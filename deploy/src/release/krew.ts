import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Runner } from "@fairlead/kernel";
import { stringify } from "yaml";
import { cliDir, repositoryDir } from "../paths.ts";
import { releaseTag } from "./plan.ts";

/** The command line tool as an archive, as krew downloads it. */
export interface KrewArchive {
  readonly version: string;
  /** Of the archive's bytes, 64 hexadecimal digits. */
  readonly sha256: string;
}

const PROJECT = "https://github.com/fairlead-dev/fairlead";

/** Name of the archive in the GitHub release of its version. */
export function krewArchiveName(version: string): string {
  return `kubectl-fairlead-${version}.tar.gz`;
}

/**
 * The plugin's manifest for krew's index (krew.googlecontainertools.github.com/v1alpha2). One archive for all systems:
 * the tool is one file that Node runs.
 */
export function krewManifest({ version, sha256 }: KrewArchive): string {
  const uri = `${PROJECT}/releases/download/${releaseTag(version)}/${krewArchiveName(version)}`;
  const files = [
    { from: "dist/*", to: "." },
    // It says that main.js is a module.
    { from: "package.json", to: "." },
    { from: "LICENSE", to: "." },
  ];
  const selector = { matchExpressions: [{ key: "os", operator: "In", values: ["linux", "darwin"] }] };
  return stringify({
    apiVersion: "krew.googlecontainertools.github.com/v1alpha2",
    kind: "Plugin",
    metadata: { name: "fairlead" },
    spec: {
      version: `v${version}`,
      homepage: PROJECT,
      shortDescription: "Shows why a packet to a Service goes where it goes",
      description: DESCRIPTION,
      caveats: "Needs Node.js 22.19 or newer on PATH.",
      platforms: [{ selector, uri, sha256, files, bin: "main.js" }],
    },
  });
}

const DESCRIPTION = `Explains how Services, EndpointSlices and nodes lead to kube-proxy's or Fairlead's rules, traces packets
through them, compares them with what they should be, and says what a change would do to traffic.
`;

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

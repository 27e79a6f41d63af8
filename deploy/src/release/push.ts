import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Runner } from "@fairlead/kernel";
import { deployDir, repositoryDir } from "../paths.ts";

/** A registry of images; its credentials are those of `docker login` and `helm registry login`. */
export interface Registry {
  /** Such as `ghcr.io/fairlead-dev`. */
  readonly prefix: string;
  /** HTTP instead of HTTPS: a registry on this machine. */
  readonly plainHttp: boolean;
}

export interface Pushed {
  /** Without a tag. */
  readonly name: string;
  /** `sha256:` and 64 hexadecimal digits. */
  readonly digest: string;
}

const MINUTES_20 = 1_200_000;

/**
 * Pushes an OCI archive under each of its tags, all architectures, as the same bytes.
 *
 * @param archive of `pnpm image --base-from-packages`
 */
export async function pushImage(
  runner: Runner,
  archive: string,
  tags: readonly string[],
  { prefix, plainHttp }: Registry,
): Promise<Pushed> {
  const name = `${prefix}/fairlead`;
  const scratch = await mkdtemp(join(tmpdir(), "fairlead-push-"));
  try {
    const digestFile = join(scratch, "digest");
    const options = ["--all", "--preserve-digests", `--dest-tls-verify=${!plainHttp}`, `--digestfile=${digestFile}`];
    for (const tag of tags) {
      const copy = ["skopeo", "copy", ...options, `oci-archive:${archive}`, `docker://${name}:${tag}`] as const;
      await runner.run(copy, { timeoutMs: MINUTES_20 });
    }
    return { name, digest: (await readFile(digestFile, "utf8")).trim() };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Packs the chart and pushes it as `PREFIX/charts/fairlead`. */
export async function pushChart(runner: Runner, version: string, { prefix, plainHttp }: Registry): Promise<Pushed> {
  const scratch = await mkdtemp(join(tmpdir(), "fairlead-chart-"));
  try {
    const chart = join(deployDir, "helm/fairlead");
    await runner.run(["helm", "lint", chart, "--set", "apiServer=https://192.0.2.1:6443"]);
    await runner.run(["helm", "package", chart, "--destination", scratch]);
    const push = ["helm", "push", join(scratch, `fairlead-${version}.tgz`), `oci://${prefix}/charts`] as const;
    const { stdout, stderr } = await runner.run(plainHttp ? [...push, "--plain-http"] : push, {
      timeoutMs: MINUTES_20,
    });
    const [, digest] = /^Digest: (sha256:[0-9a-f]{64})$/m.exec(stdout + stderr) ?? [];
    if (digest === undefined) throw new Error(`helm push printed no digest:\n${stdout}${stderr}`);
    return { name: `${prefix}/charts/fairlead`, digest };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** A package that goes to the npm registry. */
export interface PublishedPackage {
  readonly name: string;
  readonly version: string;
  /** Absolute folder. */
  readonly dir: string;
}

/** All packages that are not private, the apps last. */
export async function publishedPackages(checkout = repositoryDir): Promise<PublishedPackage[]> {
  const folder = join(checkout, "packages");
  const apps = [join(checkout, "apps/agent"), join(checkout, "apps/cli")];
  const dirs = [...(await readdir(folder)).sort().map((name) => join(folder, name)), ...apps];
  const found = await Promise.all(dirs.map(readPublished));
  return found.filter((item) => item !== undefined);
}

async function readPublished(dir: string): Promise<PublishedPackage | undefined> {
  const manifest = JSON.parse(await readFile(join(dir, "package.json"), "utf8"));
  if (manifest.private === true) return undefined;
  return { name: String(manifest.name), version: String(manifest.version), dir };
}

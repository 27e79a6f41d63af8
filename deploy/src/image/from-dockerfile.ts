import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Runner } from "@fairlead/kernel";
import { agentVersion } from "../agent-version.ts";
import { deployDir, repositoryDir } from "../paths.ts";
import type { ImageOptions } from "./from-packages.ts";

export interface DockerOptions extends ImageOptions {
  /** To the registry of the name; else an archive in the output folder. */
  readonly push: boolean;
}

/** Builds deploy/image/Dockerfile with BuildKit, which makes the SBOM and the provenance itself. */
export async function buildWithDocker(runner: Runner, options: DockerOptions): Promise<void> {
  await mkdir(options.outDir, { recursive: true });
  await runner.run(buildArgv(options, await agentVersion()), { timeoutMs: 3_600_000 });
}

export function buildArgv(options: DockerOptions, version: string): readonly [string, ...string[]] {
  const { arches, name, epoch, revision, outDir, push } = options;
  const archive = `type=oci,dest=${join(outDir, `fairlead-${version}.oci.tar`)},rewrite-timestamp=true`;
  return [
    "docker",
    "buildx",
    "build",
    `--platform=${arches.map((arch) => `linux/${arch}`).join(",")}`,
    `--file=${join(deployDir, "image/Dockerfile")}`,
    `--build-arg=SOURCE_DATE_EPOCH=${epoch}`,
    `--build-arg=VERSION=${version}`,
    ...(revision === undefined ? [] : [`--build-arg=REVISION=${revision}`]),
    `--tag=${name.includes(":") ? name : `${name}:${version}`}`,
    "--sbom=true",
    "--provenance=mode=max",
    push ? "--push" : `--output=${archive}`,
    repositoryDir,
  ];
}

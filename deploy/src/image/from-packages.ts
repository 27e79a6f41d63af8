import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Runner } from "@fairlead/kernel";
import { agentVersion, deployDir, repositoryDir } from "../paths.ts";
import { bundlePrograms, type Programs, thirdPartyNotices } from "../sbom/bundle.ts";
import { toSpdx } from "../sbom/spdx.ts";
import { type Arch, isFor } from "./arch.ts";
import { imageConfig, nodeVersion, platformLayers } from "./layers.ts";
import { type Descriptor, OciLayout } from "./oci.ts";

export interface ImageOptions {
  readonly arches: readonly Arch[];
  /** Name and tag; without a tag the agent's version is it. */
  readonly name: string;
  /** Folder for the archive and the SBOMs. */
  readonly outDir: string;
  /** Seconds since the epoch. */
  readonly epoch: number;
  readonly revision?: string;
  /** Where layers of packages are kept from one build to the next; absent: they are made anew. */
  readonly keep?: string;
}

export interface BuiltImage {
  readonly archive: string;
  readonly name: string;
  readonly platforms: readonly {
    readonly arch: Arch;
    readonly digest: string;
    /** Bytes of all compressed layers: what a node pulls. */
    readonly size: number;
    readonly sbom: string;
  }[];
}

type Platform = BuiltImage["platforms"][number];

/** Builds the image from Debian packages, Node's binary and the agent's bundle: no container registry, no daemon. */
export async function buildFromPackages(runner: Runner, options: ImageOptions): Promise<BuiltImage> {
  const scratch = await mkdtemp(join(tmpdir(), "fairlead-image-"));
  try {
    const programs = await bundlePrograms(runner, join(scratch, "bundles"));
    const name = options.name.includes(":") ? options.name : `${options.name}:${programs.agent.app.version}`;
    return await build(runner, { ...options, name }, programs, scratch);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function build(runner: Runner, options: ImageOptions, programs: Programs, scratch: string): Promise<BuiltImage> {
  await mkdir(options.outDir, { recursive: true });
  const layoutDir = join(scratch, "layout");
  await mkdir(layoutDir);
  const layout = new OciLayout(layoutDir);
  const notices = await thirdPartyNotices(programs.packages);
  const manifests: Descriptor[] = [];
  const platforms: Platform[] = [];
  for (const arch of options.arches) {
    const work = join(scratch, arch);
    await mkdir(work);
    const { layers, debian } = await platformLayers(runner, { ...options, arch, programs, notices, scratch: work });
    const config = imageConfig({ ...options, arch, version: programs.agent.app.version }, layers);
    const manifest = await layout.addImage({ arch, layers, config });
    manifests.push(manifest);
    const size = layers.reduce((sum, layer) => sum + layer.size, 0);
    const contents = { programs, debian, arch, digest: manifest.digest };
    platforms.push({ arch, digest: manifest.digest, size, sbom: await writeSbom(options, contents) });
  }
  await layout.finish([{ name: options.name, platforms: manifests }]);
  const archive = join(options.outDir, `fairlead-${programs.agent.app.version}.oci.tar`);
  await layout.archive(runner, archive, options.epoch);
  return { archive, name: options.name, platforms };
}

interface Contents {
  readonly programs: Programs;
  readonly debian: Awaited<ReturnType<typeof platformLayers>>["debian"];
  readonly arch: Arch;
  readonly digest: string;
}

async function writeSbom({ name, epoch, outDir }: ImageOptions, contents: Contents): Promise<string> {
  const { debian, arch, digest } = contents;
  const { app: agent } = contents.programs.agent;
  const npm = [contents.programs.cli.app, ...contents.programs.packages.filter(({ name }) => isFor(arch, name))];
  const spdx = toSpdx({ image: name, digest, arch, epoch, agent, npm, debian, nodeVersion: await nodeVersion() });
  const file = join(outDir, `fairlead-${agent.version}-${arch}.spdx.json`);
  await writeFile(file, `${JSON.stringify(spdx, null, 2)}\n`);
  return file;
}

/** Builds deploy/image/Dockerfile with BuildKit, which makes the SBOM and the provenance itself. */
export async function buildWithDocker(runner: Runner, options: ImageOptions): Promise<void> {
  await mkdir(options.outDir, { recursive: true });
  await runner.run(buildArgv(options, await agentVersion()), { timeoutMs: 3_600_000 });
}

export function buildArgv(options: ImageOptions, version: string): readonly [string, ...string[]] {
  const { arches, name, epoch, revision, outDir } = options;
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
    `--output=type=oci,dest=${join(outDir, `fairlead-${version}.oci.tar`)},rewrite-timestamp=true`,
    repositoryDir,
  ];
}

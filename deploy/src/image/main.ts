import { resolve } from "node:path";
import { CommandError, createRunner, type Runner } from "@fairlead/kernel";
import { Command, InvalidArgumentError } from "commander";
import { artifactsDir, repositoryDir } from "../paths.ts";
import { type Arch, isArch, ownArch } from "./arch.ts";
import { type BuiltImage, buildFromPackages, buildWithDocker, type ImageOptions } from "./from-packages.ts";

/** `pnpm image` */
interface Flags {
  readonly baseFromPackages?: true;
  readonly arch: readonly Arch[];
  readonly name: string;
  readonly output: string;
}

const command = new Command("pnpm image")
  .description("Builds the image as an OCI archive, with an SBOM (SPDX) next to it.")
  .option("--base-from-packages", "from Debian packages only, without a registry or a daemon (needs mmdebstrap)")
  .option("--arch <list>", "amd64, arm64 or both, with a comma between", arches, [ownArch()])
  .option("--name <name>", "name, with or without a tag (default tag: the version)", "ghcr.io/fairlead-dev/fairlead")
  .option("--output <folder>", "where to put it", resolve(artifactsDir, "image"));

function arches(list: string): readonly Arch[] {
  return list.split(",").map((name) => {
    if (!isArch(name)) throw new InvalidArgumentError(`${name} is neither amd64 nor arm64`);
    return name;
  });
}

/** Time of the last commit, unless SOURCE_DATE_EPOCH says another: the same sources are the same image. */
async function sourceEpoch(runner: Runner): Promise<number> {
  const given = process.env["SOURCE_DATE_EPOCH"];
  if (given !== undefined) return Number(given);
  return Number((await runner.run(["git", "-C", repositoryDir, "log", "-1", "--format=%ct"])).stdout);
}

async function main(): Promise<void> {
  const flags = command.parse().opts<Flags>();
  const runner = createRunner();
  const { stdout: revision } = await runner.run(["git", "-C", repositoryDir, "rev-parse", "HEAD"]);
  const options: ImageOptions = {
    arches: flags.arch,
    name: flags.name,
    outDir: resolve(flags.output),
    epoch: await sourceEpoch(runner),
    revision: revision.trim(),
  };
  if (flags.baseFromPackages) say(await buildFromPackages(runner, options));
  else await buildWithDocker(runner, options);
}

function say({ archive, name, platforms }: BuiltImage): void {
  const lines = platforms.map(
    ({ arch, digest, size, sbom }) =>
      `  ${arch}  ${(size / 1e6).toFixed(1)} MB compressed  ${digest}\n         ${sbom}`,
  );
  process.stdout.write(`${name}\n${lines.join("\n")}\n  ${archive}\n`);
}

try {
  await main();
} catch (error) {
  if (!(error instanceof CommandError)) throw error;
  const hint = error.message.includes("mmdebstrap") && error.reason === "not-found";
  process.stderr.write(`${error.message}${hint ? "; install it with: apt-get install mmdebstrap" : ""}\n`);
  process.exitCode = 1;
}

import { join } from "node:path";
import { errorText } from "@fairlead/base";
import { CommandError } from "@fairlead/kernel";
import { Command } from "commander";
import { ownArch } from "../../image/arch.ts";
import { ARTIFACT_STEPS } from "./artifact-steps.ts";
import { PACKAGE_STEPS } from "./package-steps.ts";
import { type LocalServer, startImageRegistry, startNpmRegistry } from "./registries.ts";
import type { Rehearsal } from "./rehearsal.ts";
import { createScratch } from "./scratch.ts";
import { VERSION_STEPS } from "./version-steps.ts";

/** `pnpm release:rehearse` */
interface Flags {
  readonly action?: string;
  readonly arch: string;
  readonly keep?: true;
}

const { action, arch, keep } = new Command("pnpm release:rehearse")
  .description(
    "Takes what is committed here through a whole release, in a clone of its own, against registries of its own on this " +
      "machine. Needs root, and the programs mmdebstrap, skopeo, docker-registry, helm and kustomize.",
  )
  .option("--action <repository>", "a clone of changesets/action in place of the one on GitHub")
  .option("--arch <list>", "architectures of the image: amd64, arm64 or both, with a comma between", ownArch())
  .option("--keep", "leave the clone, and say where it is")
  .parse()
  .opts<Flags>();

const scratch = await createScratch();
const servers: LocalServer[] = [];
try {
  const npm = await startNpmRegistry(join(scratch.dir, "npm"));
  servers.push(npm);
  const images = await startImageRegistry(join(scratch.dir, "images"));
  servers.push(images);
  const rehearsal = { scratch, npm, images, arches: arch, ...(action === undefined ? {} : { action }) };
  process.exitCode = await rehearse(rehearsal);
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exitCode = 1;
} finally {
  await Promise.all(servers.map(({ stop }) => stop()));
  if (keep) process.stdout.write(`left in ${scratch.dir}\n`);
  else await scratch.remove();
}

/** Each step needs what those before it have made: the first failure ends it. */
async function rehearse(rehearsal: Rehearsal): Promise<number> {
  const begun = performance.now();
  for (const { name, run } of [...VERSION_STEPS, ...PACKAGE_STEPS, ...ARTIFACT_STEPS]) {
    const start = performance.now();
    try {
      say("✓", name, start, await run(rehearsal));
    } catch (error) {
      say("×", name, start, messageOf(error));
      return 1;
    }
  }
  say("✓", "A release, rehearsed", begun, "nothing has left this machine");
  return 0;
}

function say(mark: string, name: string, start: number, what: string): void {
  process.stdout.write(`${mark} ${name} (${((performance.now() - start) / 1000).toFixed(0)} s): ${what}\n`);
}

/** A command that failed says why in its output, at the end. */
function messageOf(error: unknown): string {
  if (!(error instanceof CommandError)) return errorText(error);
  return `${error.message}\n${(error.stdout + error.stderr).split("\n").slice(-80).join("\n")}`;
}

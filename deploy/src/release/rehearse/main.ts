import { join } from "node:path";
import { errorText } from "@fairlead/base";
import { CommandError } from "@fairlead/kernel";
import { Command } from "commander";
import { ownArch } from "../../image/arch.ts";
import {
  createScratch,
  type LocalServer,
  type Rehearsal,
  type Scratch,
  type StepResult,
  startImageRegistry,
  startNpmRegistry,
  summaryText,
} from "./rehearsal.ts";
import { ARTIFACT_STEPS, PACKAGE_STEPS, VERSION_STEPS } from "./steps.ts";

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

const interrupted = new AbortController();
for (const [signal, code] of Object.entries({ SIGINT: 130, SIGTERM: 143 })) {
  process.on(signal, () => {
    if (interrupted.signal.aborted) return;
    process.stderr.write("\nending; what was made is removed in the background\n");
    process.exitCode = code;
    interrupted.abort();
  });
}

try {
  const scratch = await createScratch(interrupted.signal);
  try {
    await rehearseIn(scratch);
  } finally {
    if (keep) process.stdout.write(`left in ${scratch.dir}\n`);
    else if (interrupted.signal.aborted) await scratch.removeLater();
    else await scratch.remove();
  }
} catch (error) {
  fail(error);
}

async function rehearseIn(scratch: Scratch): Promise<void> {
  const servers: LocalServer[] = [];
  try {
    const npm = await startNpmRegistry(scratch.runner, join(scratch.dir, "npm"));
    servers.push(npm);
    const images = await startImageRegistry(join(scratch.dir, "images"));
    servers.push(images);
    await rehearse({ scratch, npm, images, arches: arch, ...(action === undefined ? {} : { action }) });
  } finally {
    await Promise.all(servers.map(({ stop }) => stop()));
  }
}

/** Each step needs what those before it have made: the first failure ends it. */
async function rehearse(rehearsal: Rehearsal): Promise<void> {
  const begun = performance.now();
  const results: StepResult[] = [];
  for (const { name, run } of [...VERSION_STEPS, ...PACKAGE_STEPS, ...ARTIFACT_STEPS]) {
    const start = performance.now();
    try {
      const result = await run(rehearsal);
      say("✓", name, start, result.said);
      results.push(result);
    } catch (error) {
      if (interrupted.signal.aborted) return;
      say("×", name, start, messageOf(error));
      process.exitCode = 1;
      return;
    }
  }
  say("✓", "A release, rehearsed", begun, "nothing has left this machine");
  process.stdout.write(`\n${summaryText(results)}`);
}

function say(mark: string, name: string, start: number, what: string): void {
  process.stdout.write(`${mark} ${name} (${((performance.now() - start) / 1000).toFixed(0)} s): ${what}\n`);
}

/** What fails because it is to end has nothing to say. */
function fail(error: unknown): void {
  if (interrupted.signal.aborted) return;
  process.stderr.write(`${messageOf(error)}\n`);
  process.exitCode = 1;
}

/** A command that failed says why in its output, at the end. */
function messageOf(error: unknown): string {
  if (!(error instanceof CommandError)) return errorText(error);
  return `${error.message}\n${(error.stdout + error.stderr).split("\n").slice(-80).join("\n")}`;
}

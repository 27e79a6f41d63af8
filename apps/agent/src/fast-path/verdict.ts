import { readFile } from "node:fs/promises";
import { errorChainText, stringOf, valueAt } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import { type FlowtableTest, kernelVersion } from "@fairlead/kernel";
import type { Kernel } from "../host/kernel.ts";
import type { Log } from "../log/log.ts";
import { replaceFile } from "../ownership/memory-file.ts";
import { readStateFile, stateFile } from "../ownership/state-file.ts";

export interface TestedNode {
  readonly config: Pick<AgentConfig, "stateDir">;
  readonly kernel: Pick<Kernel, "testFlowtable">;
  readonly log: Log;
}

/** Another number after each boot. */
const BOOT = "/proc/sys/kernel/random/boot_id";

/**
 * How this kernel's flowtables did in their test: as it was noted since the boot, or by a test now, which is noted.
 */
export async function testedKernel({ config, kernel, log }: TestedNode): Promise<FlowtableTest> {
  const file = stateFile(config.stateDir, "fastPath");
  const subject = { release: kernelVersion().release, boot: await bootId() };
  const noted = file === undefined ? undefined : await readNoted(file, subject);
  if (noted !== undefined) return noted;
  const tested = await kernel.testFlowtable();
  log.info("Tested the kernel's flowtables", { ...tested });
  if (tested.outcome === "impossible" || file === undefined) return tested;
  try {
    await replaceFile(file, `${JSON.stringify({ ...subject, ...tested })}\n`);
  } catch (error) {
    log.warn("Cannot write the result of the flowtable test; the next start tests again", {
      file,
      error: errorChainText(error),
    });
  }
  return tested;
}

type Subject = Readonly<Record<"release" | "boot", string>>;

/** @returns undefined: there is none of this kernel and this boot that can be read */
async function readNoted(file: string, subject: Subject): Promise<FlowtableTest | undefined> {
  // Whatever is wrong with the file, the test runs anew.
  const noted: unknown = await readStateFile(file)
    .then((text) => JSON.parse(text))
    .catch(() => undefined);
  const same = (Object.keys(subject) as (keyof Subject)[]).every((key) => valueAt(noted, key) === subject[key]);
  const outcome = valueAt(noted, "outcome");
  if (!same) return undefined;
  if (outcome === "passed") return { outcome };
  return outcome === "failed" ? { outcome, reason: stringOf(valueAt(noted, "reason")) ?? "unknown" } : undefined;
}

async function bootId(): Promise<string> {
  return (await readFile(BOOT, "utf8").catch(() => "")).trim();
}

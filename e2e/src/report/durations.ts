import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { type Outcome, titleOf } from "./outcome.ts";

/** How long a spec took the last time that it passed, by mode and title: milliseconds. */
export type Durations = Readonly<Record<string, number>>;

export function durationKey(mode: string, title: string): string {
  return `${mode} ${title}`;
}

/** What is known after a run. */
export function withOutcomes(before: Durations, outcomes: readonly Outcome[]): Durations {
  const passed = outcomes.filter(({ result }) => result.kind === "passed");
  return { ...before, ...Object.fromEntries(passed.map((one) => [durationKey(one.mode, titleOf(one)), one.ms])) };
}

/** Nothing where no run has ended yet, or the file is another program's. */
export async function readDurations(file: string): Promise<Durations> {
  try {
    const read: unknown = JSON.parse(await readFile(file, "utf8"));
    const entries = typeof read === "object" && read !== null ? Object.entries(read) : [];
    return Object.fromEntries(entries.filter(([, ms]) => typeof ms === "number"));
  } catch {
    return {};
  }
}

export async function writeDurations(file: string, durations: Durations): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${JSON.stringify(durations, null, 2)}\n`);
}

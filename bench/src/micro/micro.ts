import { readFile, writeFile } from "node:fs/promises";
import { measure } from "mitata";
import type { MicroCase } from "./cases.ts";

/** Nanoseconds of one call, the median, by the name of the case. */
export type MicroFigures = Readonly<Record<string, number>>;

export async function measureCases(cases: readonly MicroCase[]): Promise<MicroFigures> {
  const figures: Record<string, number> = {};
  for (const { name, run } of cases) figures[name] = Math.round((await measure(run)).p50);
  return figures;
}

/** A line for each case: what it takes, and how that has changed since it was recorded. */
export function comparison(now: MicroFigures, recorded: MicroFigures): string {
  const lines = Object.entries(now).map(([name, nanoseconds]) => {
    const before = recorded[name];
    const change = before === undefined ? "new" : percent(nanoseconds / before - 1);
    return `${name.padEnd(50)} ${time(nanoseconds).padStart(10)}  ${change.padStart(7)}\n`;
  });
  return lines.join("");
}

function percent(share: number): string {
  return `${share < 0 ? "−" : "+"}${Math.abs(share * 100).toFixed(0)} %`;
}

export function time(nanoseconds: number): string {
  if (nanoseconds >= 1e6) return `${(nanoseconds / 1e6).toFixed(1)} ms`;
  return nanoseconds >= 1e3 ? `${(nanoseconds / 1e3).toFixed(1)} µs` : `${nanoseconds} ns`;
}

/** Figures of a file; none where it is not there yet. */
export async function recordedFigures(file: string): Promise<MicroFigures> {
  const text = await readFile(file, "utf8").catch(() => "{}");
  return JSON.parse(text);
}

export async function record(file: string, figures: MicroFigures): Promise<void> {
  await writeFile(file, `${JSON.stringify(figures, null, 2)}\n`);
}

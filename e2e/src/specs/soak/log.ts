import type { TrafficSeen } from "../faults/traffic.ts";
import type { Figures } from "../spec.ts";
import type { SoakStep } from "./model.ts";

/** What came of one step. */
export interface SoakEntry {
  readonly step: SoakStep;
  readonly seen: TrafficSeen;
  /** From the step to rules that are as planned, in milliseconds. */
  readonly ms: number;
  /** Of the agents after it, on all nodes together, resident. */
  readonly memoryMiB: number;
}

/** A step as one line of text. */
export function stepText({ kind, ...rest }: SoakStep): string {
  const details = Object.values(rest).map((value) =>
    typeof value === "object" ? Object.values(value).join(" ") : value,
  );
  return [kind, ...details].join(" ");
}

export function entryText({ step, seen, ms, memoryMiB }: SoakEntry): string {
  const requests = `${seen.requests} requests, ${seen.failures.length} failed, gap ${Math.round(seen.longestGapMs)} ms`;
  return `${stepText(step)}: ${requests}, ${(ms / 1_000).toFixed(1)} s, agents ${Math.round(memoryMiB)} MiB`;
}

/** Steps of a kind, a row each: how often, requests meanwhile, failed ones, the longest gap. */
export function soakTable(entries: readonly SoakEntry[]): readonly string[] {
  const kinds = [...Map.groupBy(entries, ({ step }) => step.kind)].sort(([a], [b]) => a.localeCompare(b));
  const row = (cells: readonly [string, ...(string | number)[]]) =>
    cells.map((cell, at) => (at === 0 ? String(cell).padEnd(28) : String(cell).padStart(10))).join("");
  return [
    row(["step", "times", "requests", "failed", "gap, ms"]),
    ...kinds.map(([kind, of]) => row([kind, of.length, requestsOf(of), failuresOf(of).length, longestGapOf(of)])),
  ];
}

/** Requests may fail while rules are gone that another program has removed. */
export function isDamage({ step }: SoakEntry): boolean {
  return step.kind === "damaged by hand";
}

export function soakFigures(entries: readonly SoakEntry[]): Figures {
  const { true: damaged = [], false: calm = [] } = Object.groupBy(entries, (entry) => `${isDamage(entry)}` as const);
  const quarter = Math.max(1, Math.floor(entries.length / 4));
  const memory = entries.map(({ memoryMiB }) => memoryMiB);
  return {
    requests: String(requestsOf(entries)),
    failed: String(failuresOf(calm).length),
    "longest gap": `${longestGapOf(calm)} ms`,
    steps: String(entries.length),
    "failed while damaged": String(failuresOf(damaged).length),
    "longest gap while damaged": `${longestGapOf(damaged)} ms`,
    "agents' memory in the first quarter": `${meanOf(memory.slice(0, quarter))} MiB`,
    "in the last": `${meanOf(memory.slice(-quarter))} MiB`,
    "at most": `${Math.round(Math.max(...memory))} MiB`,
  };
}

function requestsOf(entries: readonly SoakEntry[]): number {
  return entries.reduce((sum, { seen }) => sum + seen.requests, 0);
}

export function failuresOf(entries: readonly SoakEntry[]): readonly string[] {
  return entries.flatMap(({ step, seen }) => seen.failures.map((failure) => `${stepText(step)}: ${failure}`));
}

function longestGapOf(entries: readonly SoakEntry[]): number {
  return Math.round(Math.max(0, ...entries.map(({ seen }) => seen.longestGapMs)));
}

function meanOf(values: readonly number[]): number {
  return Math.round(values.reduce((sum, value) => sum + value, 0) / values.length);
}

import type { Figures } from "../specs/spec.ts";
import { count, type Outcome, type Result, titleOf } from "./outcome.ts";

/** One line a spec, as it ends. */
export function progressLine(outcome: Outcome): string {
  const { mode, ms, result } = outcome;
  const words = { passed: "ok", failed: "FAILED", skipped: "skipped" };
  const reason = noteOf(result);
  return `  ${words[result.kind].padEnd(7)} ${seconds(ms)}  ${mode}  ${titleOf(outcome)}${reason}`;
}

function noteOf(result: Result): string {
  if (result.kind === "skipped") return `: ${result.reason}`;
  return result.kind === "passed" && result.figures !== undefined ? `: ${reported(result.figures)}` : "";
}

function reported(figures: Figures): string {
  return Object.entries(figures)
    .map(([what, value]) => `${what} ${value}`)
    .join(", ");
}

/** The results by mode and suite, then every failure in full. */
export function resultTable(outcomes: readonly Outcome[]): string {
  const groups = Map.groupBy(outcomes, ({ mode, suite }) => `${mode.padEnd(10)} ${suite.padEnd(10)}`);
  const rows = [...groups].map(([name, group]) => `${name} ${numbers(group)} ${seconds(sum(group))}`);
  const failures = outcomes.flatMap((outcome) => (outcome.result.kind === "failed" ? [failure(outcome)] : []));
  const head = `${"mode".padEnd(10)} ${"suite".padEnd(10)} ${columns(["passed", "failed", "skipped"])}    time`;
  return [head, ...rows, ...figureTable(outcomes), ...failures.map((text) => `\n${text}`)].join("\n");
}

/** Specs that sent requests while something went wrong, a row each; what not all of them have counted stands last. */
function figureTable(outcomes: readonly Outcome[]): readonly string[] {
  const rows = outcomes.flatMap(({ name, mode, result }) =>
    result.kind === "passed" && result.figures?.["requests"] !== undefined
      ? [{ title: `${mode}  ${name}`, figures: result.figures }]
      : [],
  );
  if (rows.length === 0) return [];
  const width = Math.max(...rows.map(({ title }) => title.length));
  const [first = { figures: {} }] = rows;
  const shared = Object.keys(first.figures).filter((what) => rows.every(({ figures }) => figures[what] !== undefined));
  const line = (title: string, cells: readonly string[], rest: string) =>
    `${title.padEnd(width)} ${cells.map((cell) => cell.padStart(COLUMN)).join("")}  ${rest}`.trimEnd();
  return [
    "",
    line("under load", shared, ""),
    ...rows.map(({ title, figures }) => {
      const rest = Object.entries(figures).filter(([what]) => !shared.includes(what));
      return line(
        title,
        shared.map((what) => figures[what] ?? ""),
        reported(Object.fromEntries(rest)),
      );
    }),
  ];
}

const COLUMN = 16;

export function summaryLine(outcomes: readonly Outcome[]): string {
  const { passed, failed, skipped } = count(outcomes);
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
}

function failure(outcome: Outcome): string {
  if (outcome.result.kind !== "failed") return "";
  const { message, artifacts } = outcome.result;
  const kept = artifacts === undefined ? [] : [`  state of every node: ${artifacts}`];
  return [`FAILED ${outcome.mode} ${titleOf(outcome)}`, `  ${message}`, ...kept].join("\n");
}

function numbers(group: readonly Outcome[]): string {
  const { passed, failed, skipped } = count(group);
  return columns([passed, failed, skipped].map(String));
}

function columns(cells: readonly string[]): string {
  return cells.map((cell) => cell.padStart(8)).join("");
}

function sum(group: readonly Outcome[]): number {
  return group.reduce((total, { ms }) => total + ms, 0);
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`.padStart(7);
}

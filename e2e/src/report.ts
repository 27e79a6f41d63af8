/** What a run says: on the terminal, as JUnit's XML, in docs/tested.md. */

import { readFile, writeFile } from "node:fs/promises";
import type { IPFamily } from "@fairlead/core";
import { markdownTable } from "@fairlead/tooling/markdown-table";
import type { Figures, Suite } from "./specs/spec.ts";

/** One line a spec, as it ends. */
export function progressLine(outcome: Outcome): string {
  const { mode, ms, result } = outcome;
  const words = { passed: "ok", failed: "FAILED", skipped: "skipped" };
  const reason = noteOf(result);
  return `  ${words[result.kind].padEnd(7)} ${seconds(ms)}  ${mode}  ${titleOf(outcome)}${reason}`;
}

/** The results by mode and suite, then every failure in full. */
export function resultTable(outcomes: readonly Outcome[]): string {
  const groups = Map.groupBy(outcomes, ({ mode, suite }) => `${mode.padEnd(10)} ${suite.padEnd(10)}`);
  const rows = [...groups].map(([name, group]) => `${name} ${numbers(group)} ${seconds(sum(group))}`);
  const failures = outcomes.flatMap((outcome) => (outcome.result.kind === "failed" ? [failure(outcome)] : []));
  const head = `${"mode".padEnd(10)} ${"suite".padEnd(10)} ${columns(["passed", "failed", "skipped"])}    time`;
  return [head, ...rows, ...failures.map((text) => `\n${text}`)].join("\n");
}

export function summaryLine(outcomes: readonly Outcome[]): string {
  const { passed, failed, skipped } = count(outcomes);
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
}

export interface Outcome {
  readonly name: string;
  readonly suite: Suite;
  readonly mode: string;
  /** Absent in specs that are not run for each. */
  readonly family?: IPFamily;
  readonly ms: number;
  readonly result: Result;
}

export type Result =
  | { readonly kind: "passed"; readonly figures?: Figures }
  | { readonly kind: "skipped"; readonly reason: string }
  | { readonly kind: "failed"; readonly message: string; readonly artifacts?: string };

export function titleOf({ name, family }: Pick<Outcome, "name" | "family">): string {
  return family === undefined ? name : `${name} [${family}]`;
}

interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export function count(outcomes: readonly Outcome[]): Counts {
  const of = (kind: Result["kind"]) => outcomes.filter(({ result }) => result.kind === kind).length;
  return { passed: of("passed"), failed: of("failed"), skipped: of("skipped") };
}

/** How many specs passed; a run of another project's specs is as many as it says. */
export function specsPassed(outcomes: readonly Outcome[]): number {
  return outcomes.reduce((sum, { result }) => {
    return result.kind === "passed" ? sum + Number(result.figures?.["specs"] ?? 1) : sum;
  }, 0);
}

/** JUnit's XML, one suite for each mode and suite, as CI systems read it. */
export function junit(name: string, outcomes: readonly Outcome[]): string {
  const groups = Map.groupBy(outcomes, ({ mode, suite }) => `${mode} ${suite}`);
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites ${attributes({ name, ...totals(outcomes) })}>`,
    ...[...groups].flatMap(([group, cases]) => [
      `  <testsuite ${attributes({ name: group, ...totals(cases) })}>`,
      ...cases.map((outcome) => testCase(`${name} ${group}`, outcome)),
      "  </testsuite>",
    ]),
    "</testsuites>\n",
  ].join("\n");
}

/** What a run of specs that all passed was about. */
interface TestedRun {
  /** `2026-11-23` */
  readonly date: string;
  /** Of the control plane, `v1.36.3`. */
  readonly kubernetes: string;
  /** Of the nodes, `6.1.140`. */
  readonly kernel: string;
  readonly provider: string;
  readonly mode: string;
  readonly networks: readonly string[];
  readonly families: readonly IPFamily[];
  readonly suites: readonly string[];
  /** How many passed. */
  readonly specs: number;
  /** From the start to the last spec, the cluster included; absent in runs before it was recorded. */
  readonly minutes?: number;
}

/** With a run in the place of the earlier one of the same kind; in a fixed order. */
export function withRun(runs: readonly TestedRun[], run: TestedRun): readonly TestedRun[] {
  const others = runs.filter((one) => kindOf(one) !== kindOf(run));
  return [...others, run].sort((one, other) => (kindOf(one) < kindOf(other) ? -1 : 1));
}

export function testedPage(runs: readonly TestedRun[]): string {
  const machines = Map.groupBy(runs, ({ kubernetes, kernel, provider }) =>
    [`Kubernetes ${kubernetes}`, `Linux ${kernel}`, PROVIDERS[provider] ?? provider].join(", "),
  );
  return `# What is tested

<!-- Made by \`pnpm e2e --record\`. -->

Runs of the specs on a real API server and endpoint slice controller in which every spec passed, the latest of each kind. A run adds itself with
\`pnpm e2e --record\` ([testing.md](testing.md#run-specs-on-a-cluster)). Other versions may work: the chart asks for
Kubernetes 1.29, nftables mode for Linux 5.13. Minutes are those of two cores with other work, from nothing to the last spec.
Those of sig-network are Kubernetes' own Conformance specs.

\`\`\`sh
pnpm e2e --provider kind --cni calico,ovn --mode nftables --suite services --record   # a row; --provider netns: network namespaces
\`\`\`

${Array.from(machines, ([machine, ones]) => testedOn(machine, ones)).join("\n")}`;
}

function testedOn(machine: string, runs: readonly TestedRun[]): string {
  const head = ["mode", "pod networks", "IP families", "suites", "specs", "minutes", "date"];
  const rows = runs.map(({ mode, networks, families, suites, specs, minutes, date }) => [
    mode,
    ...[networks, families, suites].map((names) => names.join(", ")),
    String(specs),
    String(minutes ?? ""),
    date,
  ]);
  return `## ${machine}\n\n${markdownTable(head, rows).join("\n")}\n`;
}

export async function readRuns(file: string): Promise<readonly TestedRun[]> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "[]";
    throw error;
  });
  return JSON.parse(text);
}

export async function recordRun(
  run: TestedRun,
  files: { readonly runs: string; readonly page: string },
): Promise<void> {
  const runs = withRun(await readRuns(files.runs), run);
  await writeFile(files.runs, `${JSON.stringify(runs, undefined, 2)}\n`);
  await writeFile(files.page, testedPage(runs));
}

/** Of a failed command the end says why. */
const LONGEST_NOTE = 300;

function noteOf(result: Result): string {
  if (result.kind === "skipped") return `: ${result.reason}`;
  if (result.kind === "failed") return `: ${result.message.split("\n", 1)[0]?.slice(-LONGEST_NOTE)}`;
  const figures = Object.entries(result.figures ?? {});
  return figures.length === 0 ? "" : `: ${figures.map(([what, value]) => `${what} ${value}`).join(", ")}`;
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

function totals(outcomes: readonly Outcome[]) {
  const { failed, skipped } = count(outcomes);
  const time = outcomes.reduce((sum, { ms }) => sum + ms, 0) / 1000;
  return { tests: outcomes.length, failures: failed, skipped, time };
}

function testCase(classname: string, outcome: Outcome): string {
  const { result, ms } = outcome;
  const open = `    <testcase ${attributes({ classname, name: titleOf(outcome), time: ms / 1000 })}`;
  if (result.kind === "passed") return `${open}/>`;
  const inner =
    result.kind === "skipped"
      ? `<skipped ${attributes({ message: result.reason })}/>`
      : `<failure ${attributes({ message: result.message })}>${escapeXml(result.artifacts ?? "")}</failure>`;
  return `${open}>${inner}</testcase>`;
}

function attributes(values: Readonly<Record<string, string | number>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}="${escapeXml(String(value))}"`)
    .join(" ");
}

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** What XML 1.0 has no way to write is left out. */
function escapeXml(text: string): string {
  const written = [...text].filter((character) => character >= " " || "\t\n\r".includes(character)).join("");
  return written.replace(/[&<>"]/g, (character) => ENTITIES[character] ?? character);
}

function kindOf({ kubernetes, kernel, provider, mode, networks, families, suites }: TestedRun): string {
  return JSON.stringify([kubernetes, kernel, provider, mode, networks, families, suites]);
}

const PROVIDERS: Readonly<Record<string, string>> = {
  netns: "network namespaces",
  kind: "kind",
};

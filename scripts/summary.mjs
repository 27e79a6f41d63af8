import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { reportFile, root } from "./steps.mjs";

const zero = () => ({ passed: 0, failed: 0, skipped: 0, lost: 0 });

/**
 * The counts that a run of vitest has left (tooling/counts.ts), by folder. A run that left none has not ended.
 *
 * @param {string} name FAIRLEAD_REPORT of the run
 * @param {string} folder in which it ran
 * @returns {Record<string, {passed: number, failed: number, skipped: number, lost: number}>}
 */
export function countsOf(name, folder = root) {
  return reportOf(name, folder)?.folders ?? { [`${name} tests`]: { ...zero(), failed: 1 } };
}

/** @returns {import("../tooling/counts.ts").RunReport | undefined} */
function reportOf(name, folder = root) {
  const file = reportFile(name, folder);
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;
}

/** How many of the dearest files are printed. */
const DEAREST = 10;

/**
 * The files of tests that took most processor time, so that what makes a run long is seen before it is too long.
 *
 * @param {readonly string[]} names FAIRLEAD_REPORT of the runs
 * @returns {readonly string[]} lines
 */
export function dearest(names, folder = root) {
  const files = names.flatMap((name) => reportOf(name, folder)?.files ?? []);
  const seconds = (ms) => (ms / 1_000).toFixed(1).padStart(6);
  const sum = (key) => seconds(files.reduce((all, file) => all + (file[key] ?? 0), 0));
  const rows = files.toSorted((one, other) => (other.cpu ?? 0) - (one.cpu ?? 0)).slice(0, DEAREST);
  return [
    `  seconds of CPU, and by the clock: ${files.length} files of tests, ${sum("cpu").trim()} s of CPU`,
    ...rows.map(({ file, cpu = 0, clock }) => `  ${seconds(cpu)} ${seconds(clock)}  ${file}`),
  ];
}

/**
 * What failed in the tests, a line each, with the first line of its error: the end of a long log is what is kept of it.
 *
 * @param {readonly string[]} names FAIRLEAD_REPORT of the runs
 * @returns {readonly string[]} lines
 */
export function failures(names, folder = root) {
  return names
    .flatMap((name) => reportOf(name, folder)?.failures ?? [])
    .map(({ name, message }) => `  failed: ${name}${message === "" ? "" : `: ${message}`}`);
}

/** Adds counts of several runs, by folder. */
export function addCounts(runs) {
  const sums = {};
  for (const [folder, counts] of runs.flatMap((run) => Object.entries(run))) {
    sums[folder] ??= zero();
    for (const kind of Object.keys(counts)) sums[folder][kind] += counts[kind];
  }
  return sums;
}

/**
 * What the closing lines say. Each step counts as one test, so that no failure hides behind a green count. A step that
 * failed because tests of it have failed does not count on top of them; one that failed without a failed test has broken
 * off.
 *
 * @param {Record<string, boolean>} steps what each gave, in order
 * @param {Record<string, Record<string, {passed: number, failed: number, skipped: number, lost: number}>>} tests by step,
 *   and by folder
 * @param {boolean} everySkipFails as where CI is set: everything is at hand there, so a skip has found a machine that
 *   lacks something
 * @returns {{lines: readonly string[], failed: number, passed: number}}
 */
export function closing(steps, tests, everySkipFails) {
  const sum = zero();
  const lines = [];
  for (const [folder, counts] of Object.entries(addCounts(Object.values(tests)))) {
    lines.push(`  ${folder.padEnd(28)} ${words(counts)}`);
    for (const kind of Object.keys(sum)) sum[kind] += counts[kind] ?? 0;
  }
  for (const [name, ok] of Object.entries(steps)) {
    lines.push(`  ${name.padEnd(28)} ${ok ? "passed" : "FAILED"}`);
    if (ok) sum.passed++;
    else if (!Object.values(tests[name] ?? {}).some(({ failed }) => failed > 0)) sum.failed++;
  }
  if (everySkipFails && sum.skipped > 0) {
    lines.push(`  skipped tests count as failed where CI is set: ${sum.skipped}`);
    sum.failed += sum.skipped;
    sum.skipped = 0;
  }
  if (sum.lost > 0) lines.push(`  kept from running by a suite or a file that died: ${sum.lost}`);
  return { lines: [...lines, "", words({ ...sum, lost: 0 })], passed: sum.passed, failed: sum.failed };
}

function words({ passed, failed, skipped, lost = 0 }) {
  const rare = [
    [skipped, "skipped"],
    [lost, "did not run"],
  ];
  const more = rare.filter(([count]) => count > 0).map(([count, what]) => `, ${count} ${what}`);
  return `${passed} passed, ${failed} failed${more.join("")}`;
}

/**
 * Prints the closing lines; the last one is `N passed, N failed`.
 *
 * @param {{reports?: readonly string[], keep?: string}} also runs whose dearest files and failed tests are printed; the
 *   name under which the sum is kept for `node scripts/summary.mjs NAME…`
 * @returns {number} the exit code
 */
export function summarize(steps, tests = {}, { reports = [], keep } = {}) {
  const { lines, passed, failed } = closing(steps, tests, Boolean(process.env.CI));
  if (reports.length > 0) console.log(`\n${dearest(reports).join("\n")}`);
  const failedSteps = Object.keys(steps).filter((name) => !steps[name]);
  const what = [...failures(reports), ...failedSteps.map((name) => `  failed step: ${name}`)];
  console.log(["", ...lines.slice(0, -1), ...what, ...(what.length > 0 ? [""] : []), lines.at(-1)].join("\n"));
  if (keep !== undefined) {
    mkdirSync(join(root, ".vitest"), { recursive: true });
    writeFileSync(sumFile(keep), JSON.stringify({ passed, failed, what }));
  }
  return failed === 0 && passed > 0 ? 0 : 1;
}

function sumFile(name) {
  return join(root, ".vitest", `sum-${name.replaceAll(":", "-")}.json`);
}

/** So that the sum of a run that breaks off is not that of the run before. */
export function forgetSum(name) {
  rmSync(sumFile(name), { force: true });
}

/** The sums of commands that ran one after the other, in one line, after what failed; one that left none has failed. */
if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const sums = process.argv
    .slice(2)
    .map((name) =>
      existsSync(sumFile(name))
        ? JSON.parse(readFileSync(sumFile(name), "utf8"))
        : { passed: 0, failed: 1, what: [`  failed: ${name} has not ended`] },
    );
  const sum = (kind) => sums.reduce((all, one) => all + one[kind], 0);
  for (const line of sums.flatMap(({ what }) => what)) console.log(line);
  console.log(`${sum("passed")} passed, ${sum("failed")} failed`);
  process.exitCode = sum("failed") === 0 && sum("passed") > 0 ? 0 : 1;
}

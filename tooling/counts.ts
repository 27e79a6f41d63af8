import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import type { Reporter, TestCase, TestModule, TestSuite } from "vitest/node";

/** What the tests of one folder, such as `packages/core`, gave. */
export interface Counts {
  passed: number;
  /** Tests, and suites or files that died outside of a test. */
  failed: number;
  /** Left out on purpose. */
  skipped: number;
  /** Kept from running by a suite or a file that died. */
  lost: number;
}

/** What one file of tests cost, in milliseconds. */
export interface FileCost {
  /** Relative to the repository. */
  readonly file: string;
  /** Processor time; undefined for a file that died before its tests. */
  readonly cpu: number | undefined;
  /** By the clock, imports included. */
  readonly clock: number;
}

/** What failed: a test, or a suite, a file or a promise outside of tests. */
export interface Failure {
  /** Where: file, suites and test, joined by " > ". */
  readonly name: string;
  /** The first error's message, one line. */
  readonly message: string;
}

/** What a run leaves for the closing lines of `npm test` (scripts/summary.mjs). */
export interface RunReport {
  readonly folders: Readonly<Record<string, Counts>>;
  readonly files: readonly FileCost[];
  /** One for each that `folders` counts as failed. */
  readonly failures: readonly Failure[];
}

const ROOT = join(import.meta.dirname, "..");

/** The folder of errors that nothing caught, after their file's tests had passed. */
const OUTSIDE = "(outside of tests)";

/**
 * Writes what each folder's tests gave, for the closing line of `npm test` (scripts/summary.mjs): each failure once.
 * Vitest's JSON calls a test skipped when the hook of its suite failed, and does not count the suite.
 */
export class CountsReporter implements Reporter {
  readonly #file: string;

  /** @param file where the report goes, as JSON: {@link RunReport} */
  constructor(file: string) {
    this.#file = file;
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly object[]): void {
    const folders: Record<string, Counts> = {};
    const failures: Failure[] = [];
    const failed = new Set<unknown>();
    for (const module of modules) {
      const folder = folderOf(module.moduleId);
      folders[folder] ??= zero();
      const inIt = failuresOf(module);
      if (inIt.length > 0) failed.add(module.moduleId);
      failures.push(...inIt);
      count(module, folders[folder], inIt.length);
    }
    const more = errors.filter((error) => !failed.has(fileOf(error)));
    if (more.length > 0) folders[OUTSIDE] = { ...zero(), failed: more.length };
    failures.push(...more.map((error) => ({ name: OUTSIDE, message: messageOf([error]) })));
    mkdirSync(dirname(this.#file), { recursive: true });
    const report: RunReport = { folders, files: modules.map(costOf), failures };
    writeFileSync(this.#file, JSON.stringify(report, undefined, 1));
  }
}

/**
 * The file in which vitest has seen an error that nothing caught. Where that file has failed, it is the rest of the
 * failure, such as what an abandoned test left under way.
 */
function fileOf(error: object): unknown {
  return "VITEST_TEST_PATH" in error ? error.VITEST_TEST_PATH : undefined;
}

function costOf(module: TestModule): FileCost {
  const { collectDuration, duration } = module.diagnostic();
  return {
    file: relative(ROOT, module.moduleId),
    cpu: module.meta().cpu,
    clock: Math.round(collectDuration + duration),
  };
}

function zero(): Counts {
  return { passed: 0, failed: 0, skipped: 0, lost: 0 };
}

/** Tests that failed, and suites or the file where they died outside of a test. */
function failuresOf(module: TestModule): readonly Failure[] {
  const file = relative(ROOT, module.moduleId);
  const suites = [...module.children.allSuites()].filter(isDead);
  const tests = [...module.children.allTests()].filter((test) => test.result().state === "failed");
  return [
    ...(isDead(module) ? [{ name: file, message: messageOf(module.errors()) }] : []),
    ...suites.map((suite) => ({ name: `${file} > ${suite.fullName}`, message: messageOf(suite.errors()) })),
    ...tests.map((test) => ({ name: `${file} > ${test.fullName}`, message: messageOf(test.result().errors ?? []) })),
  ];
}

function messageOf([error]: readonly object[]): string {
  const message = error !== undefined && "message" in error ? String(error.message) : "";
  return message.split("\n", 1).join("");
}

function count(module: TestModule, counts: Counts, failed: number): void {
  counts.failed += failed;
  for (const test of module.children.allTests()) {
    const { state } = test.result();
    if (state === "passed") counts.passed++;
    else if (state !== "failed") counts[whyNotRun(test)]++;
  }
}

function whyNotRun(test: TestCase): "skipped" | "lost" {
  if (test.options.mode === "skip" || test.options.mode === "todo") return "skipped";
  return hasDeadParent(test) ? "lost" : "skipped";
}

/** It threw while it was collected, or in a hook around its tests. */
function isDead(suite: TestModule | TestSuite): boolean {
  return suite.errors().length > 0;
}

function hasDeadParent(test: TestCase): boolean {
  for (let { parent } = test as { parent: TestModule | TestSuite }; ; parent = parent.parent) {
    if (isDead(parent)) return true;
    if (parent.type === "module") return false;
  }
}

/** `packages/core` of a file in it; `e2e` of one there. */
function folderOf(file: string): string {
  const [top = "", name = ""] = relative(ROOT, file).split("/");
  return top === "packages" || top === "apps" ? `${top}/${name}` : top;
}

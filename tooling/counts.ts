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

/** What a run leaves for the closing lines of `npm test` (scripts/summary.mjs). */
export interface RunReport {
  readonly folders: Readonly<Record<string, Counts>>;
  readonly files: readonly FileCost[];
}

const ROOT = join(import.meta.dirname, "..");

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
    for (const module of modules) {
      const folder = folderOf(module.moduleId);
      folders[folder] ??= zero();
      count(module, folders[folder]);
    }
    const failed = new Set<unknown>(modules.filter(hasFailed).map(({ moduleId }) => moduleId));
    const more = errors.filter((error) => !failed.has(fileOf(error)));
    if (more.length > 0) folders["(outside of tests)"] = { ...zero(), failed: more.length };
    mkdirSync(dirname(this.#file), { recursive: true });
    const report: RunReport = { folders, files: modules.map(costOf) };
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

function hasFailed(module: TestModule): boolean {
  const counts = zero();
  count(module, counts);
  return counts.failed > 0;
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

function count(module: TestModule, counts: Counts): void {
  counts.failed += isDead(module) ? 1 : 0;
  for (const suite of module.children.allSuites()) counts.failed += isDead(suite) ? 1 : 0;
  for (const test of module.children.allTests()) counts[kindOf(test)]++;
}

function kindOf(test: TestCase): keyof Counts {
  const { state } = test.result();
  if (state === "passed" || state === "failed") return state;
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

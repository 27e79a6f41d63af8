import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Where the test runs that were asked for leave their counts (tooling/vitest.ts). */
function reports(checks) {
  const rooms = ["packages", "apps"].flatMap((top) => readdirSync(`${root}${top}`).map((name) => `${top}/${name}`));
  const folders = checks.tests === undefined ? [] : [...rooms, "lab", "bench", "deploy"];
  return [
    ...folders.map((folder) => ({ folder, file: `${root}${folder}/.vitest/report.json` })),
    ...(checks["kernel tests"] === undefined ? [] : [{ folder: "e2e", file: `${root}e2e/.vitest/report.json` }]),
    ...(checks["ipvs tests"] === undefined ? [] : [{ folder: "e2e ipvs", file: `${root}e2e/.vitest/uml.json` }]),
  ];
}

function read({ folder, file }) {
  if (!existsSync(file)) return { folder, passed: 0, failed: 1, skipped: 0, reason: "ran no test" };
  const report = JSON.parse(readFileSync(file, "utf8"));
  const lost = report.success === false && report.numFailedTests === 0 ? 1 : 0;
  return {
    folder,
    passed: report.numPassedTests,
    failed: report.numFailedTests + lost,
    skipped: report.numPendingTests + report.numTodoTests,
  };
}

/** One line a package, and the sum. */
function sumTests(counts) {
  const sum = { passed: 0, failed: 0, skipped: 0 };
  for (const { folder, passed, failed, skipped, reason } of counts) {
    console.log(
      `  ${folder.padEnd(28)} ${passed} passed, ${failed} failed, ${skipped} skipped ${reason ?? ""}`.trimEnd(),
    );
    sum.passed += passed;
    sum.failed += failed;
    sum.skipped += skipped;
  }
  return sum;
}

/** With CI set a skip is a failure: everything is at hand there, so it has found a machine that lacks something. */
function countSkipsAsFailures(sum) {
  if (!process.env.CI || sum.skipped === 0) return;
  console.log(`  skipped tests count as failed where CI is set: ${sum.skipped}`);
  sum.failed += sum.skipped;
  sum.skipped = 0;
}

/**
 * Prints what each package's tests and each check gave, and the closing line.
 *
 * @param {Record<string, boolean | object>} checks the outcome of each step, in order; `e2e` counts its specs
 * @returns {number} the exit code
 */
export function summarise(checks) {
  const { e2e, ...rest } = checks;
  const testRuns = ["tests", "kernel tests", "ipvs tests"];
  console.log("");
  const specs = e2e === undefined ? [] : [{ folder: "e2e specs", ...e2e }];
  const sum = sumTests([...reports(checks).map(read), ...specs]);
  // A test run that broke off after its report was written must not pass for a green one.
  if (testRuns.some((name) => checks[name] === false) && sum.failed === 0) sum.failed = 1;
  for (const [name, ok] of Object.entries(rest).filter(([name]) => !testRuns.includes(name))) {
    console.log(`  ${name.padEnd(28)} ${ok ? "passed" : "FAILED"}`);
    sum[ok ? "passed" : "failed"] += 1;
  }
  countSkipsAsFailures(sum);
  console.log(`\n${sum.passed} passed, ${sum.failed} failed${sum.skipped > 0 ? `, ${sum.skipped} skipped` : ""}`);
  return sum.failed === 0 && sum.passed > 0 ? 0 : 1;
}

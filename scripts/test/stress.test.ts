import { describe, expect, test } from "vitest";
import { root } from "../steps.mjs";
import { failuresOfGround, failuresOfVitest, readOptions, seedsIn, summary } from "../stress.mjs";

describe("the command line", () => {
  test("has defaults", () => {
    expect(readOptions([])).toMatchObject({ runs: 20, loops: 16, bail: false, pattern: undefined });
    expect(readOptions(["hairpin", "--kind", "e2e,kernel"])).toMatchObject({
      pattern: "hairpin",
      kinds: ["e2e", "kernel"],
    });
  });

  test.each([
    [["--runs", "0"], "--runs 0: give a whole number, at least 1"],
    [["--loops", "many"], "--loops many"],
    [["--kind", "uml"], "--kind uml: give some of kernel"],
    [["one", "two"], "two: give one PATTERN"],
    [["--fast"], "--fast"],
  ])("%j is refused", (args, message) => {
    expect(() => readOptions(args)).toThrow(message);
  });
});

describe("vitest's report", () => {
  const file = (status: string, assertionResults: readonly object[], message = "") =>
    JSON.stringify({ testResults: [{ name: `${root}a/b.test.ts`, status, message, assertionResults }] });
  const failed = { fullName: "a test", status: "failed", failureMessages: ["wanted 1", "and 2"] };

  test("names each test that failed", () => {
    const report = file("failed", [failed, { fullName: "another", status: "passed", failureMessages: [] }]);
    expect(failuresOfVitest(report, 1)).toEqual([{ name: "a test", file: "a/b.test.ts", message: "wanted 1\nand 2" }]);
    expect(failuresOfVitest(file("passed", []), 0)).toEqual([]);
  });

  test("a file that died, an error outside of all tests and a run without a report are failures", () => {
    expect(failuresOfVitest(file("failed", [], "no such module"), 1)).toEqual([
      { name: "(outside of its tests)", file: "a/b.test.ts", message: "no such module" },
    ]);
    expect(failuresOfVitest(file("passed", []), 1)).toMatchObject([{ name: "(an error outside of all tests)" }]);
    expect(failuresOfVitest(undefined, 134)).toMatchObject([
      { name: "(the whole run)", message: "vitest ended with 134" },
    ]);
  });
});

test("the test ground's report names each spec that failed", () => {
  const report = `<testsuites name="netns bridge" tests="2">
    <testcase classname="netns bridge iptables services" name="passes [IPv4]" time="1"/>
    <testcase classname="netns bridge iptables services" name="DNS &lt;pod&gt; [IPv6]" time="2"><failure message="no &quot;answer&quot;">/kept</failure></testcase>`;
  expect(failuresOfGround(report, 1)).toEqual([
    { name: "DNS <pod> [IPv6]", file: "netns bridge iptables services", message: 'no "answer"' },
  ]);
  expect(failuresOfGround(report, 0)).toHaveLength(1);
  expect(failuresOfGround(undefined, 1)).toMatchObject([{ name: "(the whole run)" }]);
});

test("seeds are found in messages, each once", () => {
  expect(seedsIn('{ seed: -12, path: "0:1" } … seed: -12; soak, seed 7')).toEqual(["seed -12", "seed 7"]);
});

test("the summary has the test that failed most often first, with runs, seeds and logs", () => {
  const failure = (name: string, run: number) => ({
    name,
    file: "f.ts",
    run,
    seeds: ["seed 1"],
    log: `run-${run}.log`,
  });
  expect(summary([failure("a", 1), failure("b", 1), failure("b", 3)], 4)).toEqual([
    "4 runs, 2 tests failed",
    "",
    "f.ts > b: failed in 2 runs",
    "  run 1: seed 1; run-1.log",
    "  run 3: seed 1; run-3.log",
    "",
    "f.ts > a: failed in 1 run",
    "  run 1: seed 1; run-1.log",
  ]);
  expect(summary([], 1)).toEqual(["1 run, no test failed"]);
});

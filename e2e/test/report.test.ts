import { expect, test } from "vitest";
import { junit } from "../src/report/junit.ts";
import type { Outcome } from "../src/report/outcome.ts";
import { progressLine, resultTable, summaryLine } from "../src/report/table.ts";

const COMMON = { suite: "services", mode: "iptables", ms: 1_500 } as const;
const passed: Outcome = {
  ...COMMON,
  name: "reach",
  family: "IPv4",
  result: { kind: "passed", figures: { requests: "9", failed: "0" } },
};
const skipped: Outcome = { ...COMMON, name: "v4", family: "IPv6", result: { kind: "skipped", reason: "IPv4 alone" } };
const MESSAGE = 'wanted "a" & <b>; came \u0000refused';
const failed: Outcome = {
  ...COMMON,
  name: "policy",
  result: { kind: "failed", message: MESSAGE, artefacts: "/kept/policy" },
};
const all = [passed, skipped, failed];

test("a line for each spec has its figures or its reason", () => {
  expect(progressLine(passed)).toMatch(/ok +1\.5 s +iptables +reach \[IPv4\]: requests 9, failed 0/);
  expect(progressLine(skipped)).toMatch(/skipped .* v4 \[IPv6\]: IPv4 alone/);
});

test("the table counts by mode and suite, and tells failures in full", () => {
  const lines = resultTable(all).split("\n");
  expect(lines[1]).toMatch(/^iptables +services +1 +1 +1 +4\.5 s$/);
  expect(lines.slice(-3)).toEqual(["FAILED iptables policy", `  ${MESSAGE}`, "  state of every node: /kept/policy"]);
  expect(summaryLine(all)).toBe("1 passed, 1 failed, 1 skipped");
  expect(summaryLine([passed])).toBe("1 passed, 0 failed");
});

test("what was sent under load has a table of its own, with what only one spec has counted at the end", () => {
  const figures = { requests: "9", failed: "0", "longest gap": "12 ms" };
  const rows = [figures, { ...figures, "connections cut": "3" }];
  const lines = resultTable(rows.map((one) => ({ ...passed, result: { kind: "passed", figures: one } }))).split("\n");
  expect(lines.slice(-3)).toEqual([
    expect.stringMatching(/^under load +requests +failed +longest gap$/),
    expect.stringMatching(/^iptables {2}reach +9 +0 +12 ms$/),
    expect.stringMatching(/^iptables {2}reach +9 +0 +12 ms {2}connections cut 3$/),
  ]);
});

test("JUnit: counts, and texts that cannot break the XML", () => {
  const xml = junit("netns bridge", all);
  expect(xml).toContain('<testsuite name="iptables services" tests="3" failures="1" skipped="1" time="4.5">');
  expect(xml).toContain('<skipped message="IPv4 alone"/>');
  expect(xml).toContain('message="wanted &quot;a&quot; &amp; &lt;b&gt;; came refused"');
  expect(xml).not.toContain("\u0000");
});

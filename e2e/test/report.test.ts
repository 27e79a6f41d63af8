import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import {
  junit,
  type Outcome,
  progressLine,
  readRuns,
  resultTable,
  specsPassed,
  summaryLine,
  testedPage,
  withRun,
} from "../src/report.ts";

const COMMON = { suite: "services", mode: "iptables", ms: 1_500 } as const;
const passed: Outcome = {
  ...COMMON,
  name: "reach",
  family: "IPv4",
  result: { kind: "passed", figures: { requests: "9", failed: "0" } },
};
const skipped: Outcome = { ...COMMON, name: "v4", family: "IPv6", result: { kind: "skipped", reason: "IPv4 only" } };
const MESSAGE = 'wanted "a" & <b>; came \u0000refused';
const failed: Outcome = {
  ...COMMON,
  name: "policy",
  result: { kind: "failed", message: MESSAGE, artifacts: "/kept/policy" },
};
const all = [passed, skipped, failed];

test("a line for each spec has its figures, its reason or the first line of its failure", () => {
  expect(progressLine(passed)).toMatch(/ok +1\.5 s +iptables +reach \[IPv4\]: requests 9, failed 0/);
  expect(progressLine(skipped)).toMatch(/skipped .* v4 \[IPv6\]: IPv4 only/);
  const message = `${"a".repeat(1_000)}: exit code 1\nand more`;
  expect(progressLine({ ...failed, result: { kind: "failed", message } })).toMatch(
    /FAILED .* policy: a{287}: exit code 1$/,
  );
});

test("the table counts by mode and suite, and shows failures in full", () => {
  const lines = resultTable(all).split("\n");
  expect(lines[1]).toMatch(/^iptables +services +1 +1 +1 +4\.5 s$/);
  expect(lines.slice(-3)).toEqual(["FAILED iptables policy", `  ${MESSAGE}`, "  state of every node: /kept/policy"]);
  expect(summaryLine(all)).toBe("1 passed, 1 failed, 1 skipped");
  expect(summaryLine([passed])).toBe("1 passed, 0 failed");
});

test("JUnit: counts, and texts that cannot break the XML", () => {
  const xml = junit("netns bridge", all);
  expect(xml).toContain('<testsuite name="iptables services" tests="3" failures="1" skipped="1" time="4.5">');
  expect(xml).toContain('<skipped message="IPv4 only"/>');
  expect(xml).toContain('message="wanted &quot;a&quot; &amp; &lt;b&gt;; came refused"');
  expect(xml).not.toContain("\u0000");
});

describe("runs that are recorded", () => {
  const run = {
    date: "2030-01-02",
    kubernetes: "v1.36.3",
    kernel: "6.1.0",
    provider: "netns",
    mode: "nftables",
    networks: ["bridge"],
    families: ["IPv4", "IPv6"] as const,
    suites: ["services"],
    specs: 40,
  };

  test("a run takes the place of the earlier one of its kind", () => {
    const later = { ...run, date: "2030-02-03", specs: 41 };
    const other = { ...run, kernel: "5.15.0" };
    expect(withRun([run, other], later)).toEqual([other, later]);
  });

  test("a run of another project's specs counts as many as it had", () => {
    const others: Outcome = { ...passed, result: { kind: "passed", figures: { specs: "47" } } };
    expect(specsPassed([...all, others])).toBe(48);
  });

  test("each is a row, below the machine that it ran on", () => {
    const page = testedPage([run, { ...run, suites: ["multi-cni"], minutes: 7 }, { ...run, provider: "kind" }]);
    expect(page.match(/^## .*/gm)).toEqual([
      "## Kubernetes v1.36.3, Linux 6.1.0, network namespaces",
      "## Kubernetes v1.36.3, Linux 6.1.0, kind",
    ]);
    expect(page).toMatch(/^\| nftables \| bridge +\| IPv4, IPv6 +\| services +\| 40 +\| +\| 2030-01-02 \|$/m);
    expect(page).toMatch(/^\| nftables .*\| multi-cni +\| 40 +\| 7 +\| 2030-01-02 \|$/m);
  });

  test("docs/tested.md is made of the recorded ones", async () => {
    const file = (path: string) => new URL(`../${path}`, import.meta.url);
    const runs = await readRuns(fileURLToPath(file("tested.json")));
    expect(runs.length).toBeGreaterThan(0);
    const cells = (text: string) => text.replaceAll(/ *\| */g, "|").replaceAll(/-+/g, "-");
    expect(cells(await readFile(file("../docs/tested.md"), "utf8"))).toBe(cells(testedPage(runs)));
  });
});

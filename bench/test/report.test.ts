import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type ChurnResult, type ChurnRun, spreadOf } from "../src/churn/figures.ts";
import type { ProxyFigures } from "../src/measure/result.ts";
import { churnTable, withClusterCost } from "../src/report/cluster-cost.ts";
import { DOCS, loadRecorded, RESULTS, shown, withGrowth, withResults } from "../src/report/overview.ts";
import { markdownTable, quantity, rowsOf, textTable } from "../src/report/rows.ts";

function figures(factor: number): ProxyFigures {
  const ms = [1, 2, 3].map((value) => value * factor);
  const run = (firstSync: number) => ({
    firstSync: { ms: firstSync * factor, cpu: factor, apiBytes: 1e6 },
    fullSyncMs: 400 * factor,
    memory: { synced: 100 * factor, steady: 90 * factor, peak: 120 * factor },
    endpointChange: { ms, cpu: 0.1 * factor },
    serviceAdded: { ms },
    serviceRemoved: { ms },
    rollOut: { ms: 1000 * factor, cpu: factor },
  });
  return { runs: [run(500), run(700), run(600)] };
}

test("a row has the medians of both and their ratio", () => {
  const [first] = rowsOf(figures(1), figures(2));
  expect(first).toEqual({
    label: "start to first complete sync",
    unit: "ms",
    fairlead: 600,
    kubeProxy: 1200,
    ratio: 0.5,
  });
});

test("a start's CPU until both rest is compared where it was measured", () => {
  const label = "– CPU from exec until 30 s after it";
  const rested = (cpu: number): ProxyFigures => {
    const all = figures(1);
    return { ...all, runs: all.runs.map((run) => ({ ...run, restedCpu: cpu })) };
  };
  const row = rowsOf(rested(0.6), rested(0.4)).find((one) => one.label === label);
  expect(row).toEqual({ label, unit: "CPU ms", fairlead: 600, kubeProxy: 400, ratio: expect.closeTo(1.5) });
  expect(rowsOf(figures(1), figures(2)).map((one) => one.label)).not.toContain(label);
});

test("without kube-proxy there is no ratio; what was not measured has no row", () => {
  const rows = rowsOf(figures(1), undefined);
  expect(rows[0]).not.toHaveProperty("ratio");
  expect(rows.map(({ label }) => label)).not.toContain("CPU in an idle minute");
});

test("of a kube-proxy that was not waited for there is how long it took at least", () => {
  const rows = rowsOf(figures(1), { unfinishedAfterMs: 60_000 });
  expect(rows.filter((row) => row.kubeProxy !== undefined)).toHaveLength(1);
  expect(markdownTable(rows)).toContain("| start to first complete sync | 600 ms | > 60.0 s | < 0.01 |\n");
  expect(markdownTable(rows)).toContain("| – full sync in it | 400 ms |  |  |\n");
});

test("both tables say the same", () => {
  const rows = rowsOf(figures(1), figures(2)).slice(0, 1);
  expect(markdownTable(rows)).toContain("| start to first complete sync | 600 ms | 1200 ms | 0.50 |\n");
  expect(textTable(rows)).toMatch(/start to first complete sync +600 ms +1200 ms +0\.50\n$/);
});

test("numbers are as exact as they are worth", () => {
  expect(quantity(1.26, "ms")).toBe("1.3 ms");
  expect(quantity(12_345, "ms")).toBe("12.3 s");
  expect(quantity(33_185_955, "bytes")).toBe("33.2 MB");
  expect(quantity(1468, "bytes")).toBe("1468 B");
  expect(quantity(2.5, "count")).toBe("2.5");
});

const PAGE = [
  "before",
  "<!-- Made by `pnpm bench --document` from bench/results/fleet.json and churn-*.json. -->",
  "<!-- End of what is made. -->",
  "after",
].join("\n");

/** @param own milliseconds of each change */
function runOf(own: number): ChurnRun {
  const nothing = { requests: 0, bytes: 0 };
  const part = spreadOf([own]);
  return {
    rolling: [{ apiMs: 300, ownMs: own, each: part }],
    churn: {
      api: spreadOf([5]),
      own: part,
      total: spreadOf([own + 5]),
      seconds: 1,
    },
    api: { start: { list: nothing, watch: nothing, other: nothing }, bytesPerChange: 800 },
  };
}

const churn = (services: number): ChurnResult => ({
  machine: {
    date: "2030-01-01",
    cpu: "some",
    cores: 2,
    memoryGB: 8,
    kernel: "6.1",
    node: "v24",
    iptables: "1.8",
    load: 1,
    others: 0,
  },
  options: {
    services,
    endpoints: 10,
    runs: 1,
    perSecond: 50,
    seconds: 1,
    minSyncPeriod: "10ms",
    kubernetes: "v1",
    kubeProxyVersion: "v1",
  },
  proxies: { fairlead: [runOf(4)], "kube-proxy": [runOf(40)] },
});

test("what changes take is on the page once it is recorded, a column for each size", async () => {
  const { fleet } = await loadRecorded();
  const page = withClusterCost(PAGE, [churn(10_000), churn(1_000)], fleet);
  expect(page).toContain("| | 1,000 services | 10,000 services |");
  expect(page).toContain("| rolling update of 100 endpoints, own time | **4.0 ms** / 40 ms | **4.0 ms** / 40 ms |");
  expect(page).toContain("(one node's, multiplied) | **4.0 MB** / 4.0 MB |");
  expect(withClusterCost(PAGE, [], fleet)).not.toContain("When endpoints change");
  expect(() => withClusterCost("a page", [], fleet)).toThrow("the page needs the lines");
});

test("a table has Fairlead next to kube-proxy, and by itself", () => {
  const row = /^\| rolling update of 100 endpoints: own time \| 4.0 ms \| 40 ms \| 0.10 \|/m;
  expect(churnTable(churn(1_000))).toMatch(row);
  const { "kube-proxy": _, ...withoutKubeProxy } = churn(1_000).proxies;
  expect(churnTable({ ...churn(1_000), proxies: withoutKubeProxy })).toMatch(/own time \| 4.0 ms \| {2}\| {2}\|/);
});

const page = await readFile(join(DOCS, "performance.md"), "utf8");

test("the tables of docs/performance.md are made from what is recorded: pnpm bench --document", async () => {
  const { results, growth, churn, fleet } = await loadRecorded();
  expect(page).toBe(withResults(page, results));
  expect(page).toBe(withClusterCost(page, churn, fleet));
  expect(page).toBe(withGrowth(page, growth));
});

test("docs/performance.md is short: its text without the tables", () => {
  const text = page.split("\n").filter((line) => !line.startsWith("|"));
  expect(text.join(" ").split(/\s+/).length).toBeLessThanOrEqual(750);
});

test("a page without marks is refused", () => {
  expect(() => withResults("# Performance", [])).toThrow("the page needs the lines");
});

test("what was kept is shown as a table", async () => {
  expect(await shown(`${RESULTS}nftables-1000x10.json`)).toMatch(/^start to first complete sync +\d+ ms/m);
});

test("a size has a row, and is empty where a variant was not measured at it", () => {
  const point = (services: number, ms: number) => ({
    services,
    firstSync: { ms: 10 * ms, cpu: 1 },
    endpointChange: { ms, cpu: 0.1 },
    resident: 100,
  });
  const growth = [
    { name: "nft", points: [point(10_000, 200), point(100, 20)] },
    { name: "nftables", points: [point(10_000, 5)] },
  ];
  const mark = "<!-- Made by `pnpm bench --document` from bench/results/growth-*.json. -->";
  const made = withGrowth(`${mark}\n<!-- End of what is made. -->`, growth);
  expect(made).toContain("| 100 | 20 ms, 200 ms |  |\n| 10,000 | 200 ms, 2000 ms | 5.0 ms, 50 ms |\n");
});

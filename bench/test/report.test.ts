import { expect, test } from "vitest";
import type { ProxyFigures } from "../src/measure/result.ts";
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
  return {
    runs: [run(500), run(700), run(600)],
    recorded: {
      start: { processes: 10, bytes: 2e6 },
      endpointChange: { processes: 1, bytes: 1500 },
      bare: { startMs: 300, endpointChangeMs: 2, endpointChangeCpu: 0.05 },
    },
  };
}

test("a row has the medians of both, their ratio and the limit", () => {
  const [first] = rowsOf(figures(1), figures(2));
  expect(first).toEqual({
    label: "start to first complete sync",
    unit: "ms",
    fairlead: 600,
    kubeProxy: 1200,
    ratio: 0.5,
    bare: 300,
  });
});

test("the tools' CPU stands beside that of the same work", () => {
  const cpu = rowsOf(figures(1), undefined).filter(({ label }) => label === "– CPU");
  expect(cpu.map(({ bare }) => bare)).toEqual([undefined, 50, undefined]);
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
  expect(markdownTable(rows)).toContain("| start to first complete sync | 600 ms | > 60.0 s | < 0.01 | 300 ms |\n");
  expect(markdownTable(rows)).toContain("| – full sync in it | 400 ms |  |  |  |\n");
});

test("both tables say the same", () => {
  const rows = rowsOf(figures(1), figures(2)).slice(0, 1);
  expect(markdownTable(rows)).toContain("| start to first complete sync | 600 ms | 1200 ms | 0.50 | 300 ms |\n");
  expect(textTable(rows)).toMatch(/start to first complete sync +600 ms +1200 ms +0\.50 +300 ms\n$/);
});

test("numbers are as exact as they are worth", () => {
  expect(quantity(1.26, "ms")).toBe("1.3 ms");
  expect(quantity(12_345, "ms")).toBe("12.3 s");
  expect(quantity(33_185_955, "bytes")).toBe("33.2 MB");
  expect(quantity(1468, "bytes")).toBe("1468 B");
  expect(quantity(2.5, "count")).toBe("2.5");
});

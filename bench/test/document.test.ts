import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { withClusterCost } from "../src/report/cluster-cost.ts";
import { growthPlot, plots } from "../src/report/growth-plot.ts";
import { DOCS, loadRecorded, RESULTS, shown, withResults } from "../src/report/overview.ts";

const page = await readFile(join(DOCS, "performance.md"), "utf8");

test("the table and the plots of docs/performance.md are made from what is recorded: pnpm bench --document", async () => {
  const { results, growth, churn, fleet } = await loadRecorded();
  expect(page).toBe(withResults(page, results));
  expect(page).toBe(withClusterCost(page, churn, fleet));
  for (const [name, svg] of Object.entries(plots(growth))) {
    expect(await readFile(join(DOCS, name), "utf8")).toBe(svg);
  }
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

test("a plot has a line for each series and marks every size", () => {
  const point = (services: number, ms: number) => ({
    services,
    firstSync: { ms, cpu: 1 },
    endpointChange: { ms, cpu: 0.1 },
    resident: 100,
  });
  const flat = { name: "flat", points: [point(100, 20), point(10_000, 20)] };
  const steep = { name: "steep", points: [point(100, 10), point(10_000, 1000)] };
  const svg = growthPlot("time", [flat, steep], ({ endpointChange }) => endpointChange.ms);
  const lines = [...svg.matchAll(/<polyline points="([^"]+)"/g)].map(([, places = ""]) => places.split(" "));
  expect(lines).toHaveLength(2);
  const heights = lines.map((places) => places.map((place) => Number(place.split(",")[1])));
  expect(heights[0]?.[0]).toBe(heights[0]?.[1]);
  // The larger value stands higher.
  expect(heights[1]?.[1]).toBeLessThan(heights[1]?.[0] ?? 0);
  expect(svg).toContain(">10,000</text>");
});

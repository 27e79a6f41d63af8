import { expect, test } from "vitest";
import { type ChurnResult, type ChurnRun, spreadOf } from "../src/churn/figures.ts";
import { churnTable, withClusterCost } from "../src/report/cluster-cost.ts";
import { loadRecorded } from "../src/report/overview.ts";

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
  const { "kube-proxy": _, ...alone } = churn(1_000).proxies;
  expect(churnTable({ ...churn(1_000), proxies: alone })).toMatch(/own time \| 4.0 ms \| {2}\| {2}\|/);
});

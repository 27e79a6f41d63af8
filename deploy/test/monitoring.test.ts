import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { ClusterState } from "@fairlead/core";
import { beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { createMetrics } from "../../apps/agent/src/metrics/metrics.ts";
import { modes } from "../../apps/agent/src/modes/index.ts";
import { METRICS } from "../../apps/cli/src/commands/verify/watch/report.ts";
import { deployDir } from "../src/paths.ts";

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}
interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}

const read = (name: string) => readFile(join(deployDir, "helm/fairlead/monitoring", name), "utf8");
let panels: Panel[] = [];
let rules: Rule[] = [];
let variables: { name: string; query: string }[] = [];
const series = new Set<string>();

beforeAll(async () => {
  const dashboard = JSON.parse(await read("grafana-dashboard.json"));
  panels = dashboard.panels;
  variables = dashboard.templating.list;
  rules = parse(await read("alerts.yaml")).groups.flatMap((group: { rules: Rule[] }) => group.rules);
  for (const mode of modes) {
    const connections = async () => ({ series: [], leftOut: 0 });
    const options = { mode: mode.facts, learns: true, connections };
    const { text } = await createMetrics(new ClusterState(), options).text();
    for (const [, name = "", type] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
      for (const suffix of type === "histogram" ? ["_bucket", "_sum", "_count"] : [""]) series.add(name + suffix);
    }
  }
  for (const { name } of METRICS) series.add(name);
  // Prometheus' own.
  series.add("up");
});

const expressions = () => [
  ...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  ...rules.map(({ expr }) => expr),
];

test("every series is one of the agent's, or of fairlead verify --watch", () => {
  expect(expressions().length).toBeGreaterThan(30);
  const unknown = expressions()
    .flatMap(seriesOf)
    .filter((name) => !series.has(name));
  expect(unknown).toEqual([]);
});

test("a name that no metric has is found", () => {
  expect(seriesOf('sum by (le) (rate(kubeproxy_nothing_bucket{a="b"}[5m])) > 800e6')).toEqual([
    "kubeproxy_nothing_bucket",
  ]);
  expect(series.has("kubeproxy_nothing_bucket")).toBe(false);
});

test("agents are known by a metric that each of them has, and not by what a scrape or a DaemonSet is called", () => {
  const all = expressions();
  expect(all.filter((expr) => /\b(?:job|namespace|pod|container)\s*[=!]/.test(expr))).toEqual([]);
  // Any process has these, and kube-proxy the others.
  const shared = all.filter((expr) => seriesOf(expr).some((name) => /^(?:up|process_|nodejs_)/.test(name)));
  expect(shared.length).toBeGreaterThan(5);
  for (const expr of [...shared, ...rules.map(({ expr: rule }) => rule)])
    expect(seriesOf(expr).join()).toMatch(/fairlead_/);
});

test("labels are the agent's or Prometheus'", () => {
  const known = [
    "ip_family",
    "ownership",
    "traffic_policy",
    "table",
    "kind",
    "code",
    "le",
    "instance",
    "job",
    "source",
    "state",
    "reason",
    "namespace",
    "service",
    "endpoint",
  ];
  expect(
    expressions()
      .flatMap(labelsOf)
      .filter((label) => !known.includes(label)),
  ).toEqual([]);
});

describe("the dashboard", () => {
  test("panels have their own ids and places", () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, at) => `${x + (at % w)},${y + Math.floor(at / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(Math.max(...panels.map(({ gridPos: { x, w } }) => x + w))).toBe(24);
  });

  test("variables that expressions use exist", () => {
    const used = expressions().flatMap((expr) => [...expr.matchAll(/\$([a-z]\w*)/g)].map(([, name]) => name));
    expect([...new Set(used)].filter((name) => !variables.some((variable) => variable.name === name))).toEqual([]);
    expect(variables.flatMap(({ query }) => seriesOf(query)).filter((name) => series.has(name))).toEqual([
      "fairlead_build_info",
    ]);
  });
});

test("every alert has a name of its own and says what is the matter", () => {
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  for (const { alert, annotations } of rules) {
    expect(alert).toMatch(/^Fairlead[A-Z]/);
    expect(annotations.summary).toMatch(/^.{10,}/);
  }
});

test("every alert has its heading on the page that it names, and the page has no other", async () => {
  const page = await readFile(join(deployDir, "../docs/runbooks/alerts.md"), "utf8");
  const url = "https://github.com/fairlead-dev/fairlead/blob/main/docs/runbooks/alerts.md#";
  expect(rules.map(({ annotations }) => annotations.runbook_url)).toEqual(
    rules.map(({ alert }) => `${url}${alert.toLowerCase()}`),
  );
  expect([...page.matchAll(/^## (.*)$/gm)].map(([, heading]) => heading)).toEqual(rules.map(({ alert }) => alert));
});

/** Functions, operators and words of PromQL that the dashboards use; a new one fails the test until it stands here. */
const WORDS = new Set([
  "sum",
  "max",
  "avg",
  "count",
  "by",
  "and",
  "or",
  "on",
  "last_over_time",
  "rate",
  "increase",
  "histogram_quantile",
  "clamp_min",
  "topk",
  "le",
  "label_values",
]);

/** Names of the series that a PromQL expression asks for: `…_bucket` is as it stands there. */
function seriesOf(expression: string): string[] {
  const bare = expression
    .replace(/\{[^}]*\}/g, "")
    .replace(/\[[^\]]*\]/g, "")
    .replace(/\b(?:by|on) \([^)]*\)/g, "")
    .replace(/label_values\((\w+), \w+\)/, "$1");
  const names = bare.match(/[a-zA-Z_:][\w:]*/g) ?? [];
  return [...new Set(names.filter((name) => !WORDS.has(name) && !/^e\d+$/.test(name)))];
}

function labelsOf(expression: string): string[] {
  const matched = [...expression.matchAll(/(\w+)=~?"/g)].map(([, label = ""]) => label);
  const grouped = [...expression.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(/,\s*/));
  return [...new Set([...matched, ...grouped])];
}

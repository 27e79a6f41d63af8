import type { Result } from "../measure/result.ts";
import { quantity } from "./render.ts";
import { type Row, rowsOf } from "./rows.ts";
import { bySize, machineText, type Recorded, shownAs } from "./tables.ts";

/** The rows that an operator asks for first, with what they are called here. */
const CHOSEN: Readonly<Record<string, string>> = {
  "start to first complete sync": "first sync",
  "one endpoint changes, median": "one endpoint changes",
  "a service is added, median": "a service is added",
  "– steady": "memory",
  "CPU in an idle minute": "CPU in an idle minute",
};

/** docs/performance.md: one screen for operators. */
export function overviewDocument({ results, growth, meaning }: Recorded): string {
  const sorted = [...results].sort(bySize);
  return [
    "# Performance",
    "",
    "<!-- Made by `pnpm bench --document` from bench/results; edit bench/meaning.md, or measure again. -->",
    "",
    "Fairlead / kube-proxy v1.37 on the same work, in turns, with 10 endpoints a service.",
    "",
    `| | ${sorted.map(title).join(" | ")} |`,
    `| --- |${" --: |".repeat(sorted.length)}`,
    ...Object.entries(CHOSEN).map(
      ([label, name]) => `| ${[name, ...sorted.map((result) => cell(result, label))].join(" | ")} |`,
    ),
    "",
    ...sorted.slice(0, 1).map(({ machine }) => `Measured on a small machine: ${machineText(machine)}.`),
    "",
    ...growthPictures(growth.length > 0),
    meaning.trim(),
    "",
  ].join("\n");
}

function title({ options }: Result): string {
  const { services } = options;
  return `${shownAs(options)}, ${services.toLocaleString("en")}`;
}

function cell({ proxies }: Result, label: string): string {
  const row = rowsOf(proxies.fairlead, proxies["kube-proxy"]).find((one) => one.label === label);
  return row === undefined ? "" : pair(row);
}

function pair({ fairlead, kubeProxy, unfinished, unit }: Row): string {
  const other = kubeProxy === undefined ? "–" : `${unfinished ? "> " : ""}${quantity(kubeProxy, unit)}`;
  return `**${quantity(fairlead, unit)}** / ${other}`;
}

function growthPictures(recorded: boolean): readonly string[] {
  if (!recorded) return [];
  return [
    "![Time of one endpoint change against the number of services](growth-change.svg)",
    "",
    "![Time from start to first complete sync against the number of services](growth-start.svg)",
    "",
  ];
}

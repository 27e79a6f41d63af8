import type { Machine } from "../measure/machine.ts";
import type { Result } from "../measure/result.ts";
import { quantity } from "./render.ts";
import { type Row, rowsOf } from "./rows.ts";

/**
 * The rows that an operator asks for first, with their names in the document. The first of a label counts; what no
 * result has is left out.
 */
const CHOSEN: Readonly<Record<string, string>> = {
  "start to first complete sync": "first sync",
  "– CPU": "CPU of the first sync",
  "– CPU from exec until 30 s after it": "CPU until 30 s after it",
  "one endpoint changes, median": "one endpoint changes",
  "a service is added, median": "a service is added",
  "– steady": "memory",
  "CPU in an idle minute": "CPU in an idle minute",
};

const BEGIN = "<!-- Made by `pnpm bench --document` from bench/results. -->";
const END = "<!-- End of what is made. -->";

/**
 * Writes the recorded results into a page, between its two marks.
 *
 * @throws Error when the page has no marks
 */
export function withResults(page: string, results: readonly Result[]): string {
  return between(page, BEGIN, overview(results));
}

/** @throws Error when the page does not have the mark, or not the end after it */
export function between(page: string, mark: string, made: string): string {
  const begin = page.indexOf(mark);
  const end = page.indexOf(END, begin);
  if (begin < 0 || end < begin) throw new Error(`the page needs the lines "${mark}" and "${END}"`);
  return `${page.slice(0, begin)}${mark}\n\n${made}\n\n${page.slice(end)}`;
}

function overview(results: readonly Result[]): string {
  const sorted = [...results].sort(bySize);
  return [
    `| | ${sorted.map(title).join(" | ")} |`,
    `| --- |${" --: |".repeat(sorted.length)}`,
    ...Object.entries(CHOSEN).flatMap(([label, name]) => {
      const cells = sorted.map((result) => cell(result, label));
      return cells.every((text) => text === "") ? [] : [`| ${[name, ...cells].join(" | ")} |`];
    }),
    "",
    ...sorted.slice(0, 1).map(({ machine }) => `Measured on a small machine: ${machineText(machine)}.`),
  ].join("\n");
}

function bySize({ options: a }: Result, { options: b }: Result): number {
  return a.services - b.services || (shownAs(a) < shownAs(b) ? 1 : -1);
}

/** A variant of iptables stands for its mode. */
function shownAs({ mode, variant }: Result["options"]): string {
  return ({ iptables: variant } as Readonly<Record<string, string>>)[mode] ?? mode;
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

export function machineText({ date, cpu, cores, memoryGB, kernel, node, iptables, load, others }: Machine): string {
  const hardware = `${cores} × ${cpu}, ${memoryGB} GB, Linux ${kernel}, Node ${node}, iptables ${iptables}`;
  const company = others === undefined ? "" : `, other processes took ${others.toFixed(2)} cores`;
  return `${date}, ${hardware}; load average ${load.toFixed(0)}${company}`;
}

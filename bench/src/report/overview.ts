import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { ChurnResult } from "../churn/figures.ts";
import type { FleetResult } from "../fleet.ts";
import type { GrowthPoint } from "../measure/growth.ts";
import type { Machine } from "../measure/process-figures.ts";
import type { Result } from "../measure/result.ts";
import { quantity, type Row, rowsOf, textTable } from "./rows.ts";

const BEGIN = "<!-- Made by `pnpm bench --document` from bench/results. -->";

/** Writes the recorded results into a page, between its two marks. */
export function withResults(page: string, results: readonly Result[]): string {
  return between(page, BEGIN, overview(results));
}

/** Of one variant, at growing numbers of services. */
export interface Series {
  readonly name: string;
  readonly points: readonly GrowthPoint[];
}

const GROWTH = "<!-- Made by `pnpm bench --document` from bench/results/growth-*.json. -->";

/** Writes what starts and changes take at each size into a page, a row for each size. */
export function withGrowth(page: string, growth: readonly Series[]): string {
  const sizes = [...new Set(growth.flatMap(({ points }) => points.map(({ services }) => services)))];
  const cellOf = ({ points }: Series, size: number) => {
    const point = points.find(({ services }) => services === size);
    return point === undefined
      ? ""
      : `${quantity(point.endpointChange.ms, "ms")}, ${quantity(point.firstSync.ms, "ms")}`;
  };
  const rows = sizes
    .toSorted((one, other) => one - other)
    .map((size) => [size.toLocaleString("en"), ...growth.map((series) => cellOf(series, size))]);
  const head = ["services", ...growth.map(({ name }) => name)];
  const lines = [head, ["--:", ...growth.map(() => "--:")], ...rows].map((cells) => `| ${cells.join(" | ")} |`);
  return between(page, GROWTH, lines.join("\n"));
}

const END = "<!-- End of what is made. -->";

export function between(page: string, mark: string, made: string): string {
  const begin = page.indexOf(mark);
  const end = page.indexOf(END, begin);
  if (begin < 0 || end < begin) throw new Error(`the page needs the lines "${mark}" and "${END}"`);
  return `${page.slice(0, begin)}${mark}\n\n${made}\n\n${page.slice(end)}`;
}

export function machineText({ date, cpu, cores, memoryGB, kernel, node, iptables, load, others }: Machine): string {
  const hardware = `${cores} × ${cpu}, ${memoryGB} GB, Linux ${kernel}, Node ${node}, iptables ${iptables}`;
  const company = others === undefined ? "" : `, other processes took ${others.toFixed(2)} cores`;
  return `${date}, ${hardware}; load average ${load.toFixed(0)}${company}`;
}

const root = new URL("../../../", import.meta.url);

export const RESULTS = fileURLToPath(new URL("bench/results/", root));
export const DOCS = fileURLToPath(new URL("docs/", root));

/** What docs/performance.md shows, each by file name. */
interface Recorded {
  /** `iptables-*.json` and `nftables-*.json` of bench/results. */
  readonly results: readonly Result[];
  /** `growth-VARIANT.json`. */
  readonly growth: readonly Series[];
  /** `churn-SERVICES.json`. */
  readonly churn: readonly ChurnResult[];
  /** `fleet.json`. */
  readonly fleet: FleetResult;
}

export async function loadRecorded(): Promise<Recorded> {
  const names = (await readdir(RESULTS)).sort();
  const load = async (name: string) => JSON.parse(await readFile(`${RESULTS}${name}`, "utf8"));
  const growthFiles = names.filter((name) => /^growth-\w+\.json$/.test(name));
  return {
    results: await Promise.all(names.filter((name) => /^(?:iptables|nftables)-.*\.json$/.test(name)).map(load)),
    churn: await Promise.all(names.filter((name) => /^churn-\d+\.json$/.test(name)).map(load)),
    fleet: await load("fleet.json"),
    growth: await Promise.all(
      growthFiles.map(async (name) => ({ name: name.replace(/^growth-|\.json$/g, ""), ...(await load(name)) })),
    ),
  };
}

/** The figures of a file that `--save` wrote, as a table, and where they were measured. */
export async function shown(file: string): Promise<string> {
  const kept: Result = JSON.parse(await readFile(file, "utf8"));
  const { runs, changes, kubernetes, kubeProxyVersion } = kept.options;
  const how = `${runs} runs of each with ${changes} endpoint changes; kube-proxy ${kubeProxyVersion}, API server ${kubernetes}`;
  return `${textTable(rowsOf(kept.proxies.fairlead, kept.proxies["kube-proxy"]))}\n${how}; ${machineText(kept.machine)}.\n`;
}

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

function overview(results: readonly Result[]): string {
  const sorted = [...results].sort(bySize);
  return [
    `| | ${sorted.map(title).join(" | ")} |`,
    `| --- |${" --: |".repeat(sorted.length)}`,
    ...Object.entries(CHOSEN).flatMap(([label, name]) => {
      const cells = sorted.map((result) => cell(result, label));
      return cells.every((text) => text === "") ? [] : [`| ${[name, ...cells].join(" | ")} |`];
    }),
    `| ${["measured", ...sorted.map(({ machine }) => machine.date)].join(" | ")} |`,
    "",
    ...sorted.slice(0, 1).map(({ machine }) => `Measured on a small machine; the first: ${machineText(machine)}.`),
  ].join("\n");
}

function bySize({ options: a }: Result, { options: b }: Result): number {
  return a.services - b.services || (shownAs(a) < shownAs(b) ? 1 : -1);
}

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

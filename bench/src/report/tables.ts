import { comparison } from "../ipvs/table.ts";
import type { GrowthPoint } from "../measure/growth.ts";
import type { Machine } from "../measure/machine.ts";
import type { IpvsResult, Result } from "../measure/result.ts";
import type { MicroFigures } from "../micro/micro.ts";
import { time } from "../micro/micro.ts";
import type { Series } from "./growth-plot.ts";
import { markdownTable, quantity } from "./render.ts";
import { rowsOf } from "./rows.ts";

/** Everything that the document is made of. */
export interface Recorded {
  /** By file name. */
  readonly results: readonly Result[];
  readonly ipvs: readonly IpvsResult[];
  readonly growth: readonly Growth[];
  readonly micro: MicroFigures;
  /** Markdown of what the figures mean for operators, written by hand. */
  readonly meaning: string;
}

/** A variant's growth and, where that was recorded, the machine. */
interface Growth extends Series {
  readonly machine?: Machine;
}

/** bench/tables.md: every row of every recorded result. */
export function tablesDocument({ results, ipvs, growth, micro }: Recorded): string {
  return [
    "# Recorded results",
    "",
    "<!-- Made by `pnpm bench --document` from bench/results. -->",
    "",
    "[README.md](README.md) says how it is measured, [findings.md](findings.md) what was found out.",
    "`ratio` is Fairlead's share of kube-proxy's, medians of all runs; _tools alone_ is iptables-restore with the text that Fairlead gave it.",
    "",
    ...[...results].sort(bySize).flatMap(section),
    ...ipvs.flatMap(ipvsSection),
    ...growthSection(growth),
    "## Micro benchmarks",
    "",
    "Medians; `pnpm bench --micro` compares with them.",
    "",
    "| work | time |",
    "| --- | --: |",
    ...Object.entries(micro).map(([name, nanoseconds]) => `| ${name} | ${time(nanoseconds)} |`),
    "",
  ].join("\n");
}

export function bySize({ options: a }: Result, { options: b }: Result): number {
  return a.services - b.services || (shownAs(a) < shownAs(b) ? 1 : -1);
}

/** A variant of iptables stands for its mode. */
export function shownAs({ mode, variant }: Result["options"]): string {
  return ({ iptables: variant } as Readonly<Record<string, string>>)[mode] ?? mode;
}

function section({ machine, options, proxies }: Result): readonly string[] {
  const { services, endpoints } = options;
  return [
    `## ${headingOf(options)}: ${services.toLocaleString("en")} services × ${endpoints} endpoints`,
    "",
    markdownTable(rowsOf(proxies.fairlead, proxies["kube-proxy"])),
    `${askedText(options)}; ${machineText(machine)}.`,
    "",
  ];
}

function headingOf(options: Result["options"]): string {
  const [mode, shown] = [options.mode, shownAs(options)];
  return mode === shown ? mode : `${mode}, ${shown}`;
}

/** Everything takes ten times as long there as on the machine itself. */
function ipvsSection({ machine, options, results }: IpvsResult): readonly string[] {
  const { services, endpoints } = options;
  return [
    `## ipvs, in User-Mode Linux: ${services.toLocaleString("en")} services × ${endpoints} endpoints`,
    "",
    comparison(results),
    "",
    `${askedText(options)}; ${machineText(machine)}.`,
    "",
  ];
}

function askedText({ runs, changes, kubernetes, kubeProxyVersion }: Result["options"]): string {
  const what = `${runs} ${runs === 1 ? "run" : "runs"} of each with ${changes} endpoint changes`;
  return `${what}; kube-proxy ${kubeProxyVersion}, API server ${kubernetes}`;
}

export function machineText({ date, cpu, cores, memoryGB, kernel, node, iptables, load, others }: Machine): string {
  const hardware = `${cores} × ${cpu}, ${memoryGB} GB, Linux ${kernel}, Node ${node}, iptables ${iptables}`;
  const company = others === undefined ? "" : `, other processes took ${others.toFixed(2)} cores`;
  return `${date}, ${hardware}; load average ${load.toFixed(0)}${company}`;
}

function growthSection(growth: readonly Growth[]): readonly string[] {
  if (growth.length === 0) return [];
  return [
    "## Growth",
    "",
    "| services | variant | first sync | CPU | one change | CPU | memory |",
    "| --: | --- | --: | --: | --: | --: | --: |",
    ...growth.flatMap(({ name, points }) => points.map((point) => growthRow(name, point))),
    "",
    ...growth.flatMap(({ name, machine }) => (machine === undefined ? [] : [`${name}: ${machineText(machine)}.`, ""])),
  ];
}

function growthRow(name: string, { services, firstSync, endpointChange, resident }: GrowthPoint): string {
  const cells = [
    services.toLocaleString("en"),
    name,
    quantity(firstSync.ms, "ms"),
    quantity(firstSync.cpu * 1000, "ms"),
    quantity(endpointChange.ms, "ms"),
    quantity(endpointChange.cpu * 1000, "ms"),
    quantity(resident, "MB"),
  ];
  return `| ${cells.join(" | ")} |`;
}

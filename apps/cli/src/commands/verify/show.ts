import type { Finding } from "@fairlead/inspect";
import type { Style } from "../../frame/style.ts";
import type { FamilyReport } from "./check.ts";
import type { NodeReport } from "./look.ts";

const SIGNS: Readonly<Record<Finding["kind"], string>> = { missing: "-", extra: "+", different: "~", unknown: "?" };

/** What was found on each node. */
export function nodeReportsText(reports: readonly NodeReport[], style: Style): string {
  return reports
    .map((report) => {
      const found =
        "problem" in report
          ? `${style.warn("not looked at")}: ${report.problem}\n`
          : reportText(report.families, style);
      return `${style.bold(report.node)}: ${found}`;
    })
    .join("");
}

/** Findings of one service that are shown. */
const MOST = 20;

/** Findings by family and service: - is missing, + is too much, ~ is different. */
export function reportText(reports: readonly FamilyReport[], style: Style): string {
  const all = reports.flatMap(({ family, services }) =>
    services.map(({ service, kind, findings }) => {
      const head = style.bold(`${service ?? "all services"} ${family}: ${style.bad(kind)}`);
      const shown = findings
        .slice(0, MOST)
        .map(({ kind: sort, where, what }) => `  ${SIGNS[sort]} ${where}: ${what}\n`);
      const more = findings.length > MOST ? [`  and ${findings.length - MOST} more\n`] : [];
      return [`${head}\n`, ...shown, ...more].join("");
    }),
  );
  const notes = reports.flatMap((report) => [
    ...unknownText(report, style),
    ...notesText(report),
    ...(report.fastPath === undefined ? [] : [`note, ${report.family}: ${report.fastPath}\n`]),
  ]);
  if (all.length > 0) return [...otherConfiguration(reports, style), ...all, ...notes].join("");
  return [`${style.good("nothing differs")} (${reports.map(({ family }) => family).join(", ")})\n`, ...notes].join("");
}

/** Fewer say nothing about the configuration. */
const TELLING = 3;

/** Where most services differ the plan is wrong sooner than the kernel. */
function otherConfiguration(reports: readonly FamilyReport[], style: Style): readonly string[] {
  const planned = reports.reduce((sum, report) => sum + report.planned, 0);
  const differing = reports.flatMap(({ services }) => services).filter(({ service }) => service !== undefined).length;
  if (differing < TELLING || differing * 2 <= planned) return [];
  const what = `${differing} of ${planned} services differ: this looks like another configuration`;
  return [`${style.warn(what)} (mode, CIDRs) than that of the proxy, or like no proxy at all\n`];
}

/** A rule that cannot be decided is met by packets to many services: one line says so, with an example. */
function unknownText({ family, unknown: [first, ...more] = [] }: FamilyReport, style: Style): readonly string[] {
  if (first === undefined) return [];
  const others = more.length === 0 ? "" : `, and ${more.length} more kinds of packets`;
  return [`${style.warn("unknown")}, ${family}: ${first.where}: ${first.what}${others}\n`];
}

/** What others' rules do is one line, with an example: it is the same for one service as for the next. */
function notesText({ family, notes: [first, ...more] = [] }: FamilyReport): readonly string[] {
  if (first === undefined) return [];
  const { where, what } = first;
  const others = more.length === 0 ? "" : `, and ${more.length} more like it`;
  return [`note, ${family}: rules of others masquerade: ${where}: ${what}${others}\n`];
}

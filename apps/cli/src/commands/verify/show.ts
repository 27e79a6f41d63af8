import type { Finding } from "@fairlead/inspect";
import type { Style } from "../../frame/style.ts";
import { counted, verdictText } from "../../output/findings.ts";
import type { FamilyReport } from "./check.ts";
import type { NodeReport } from "./look.ts";

const SIGNS: Readonly<Record<Finding["kind"], string>> = { missing: "-", extra: "+", different: "~", unknown: "?" };

/** What was found on each node. */
export function nodeReportsText(reports: readonly NodeReport[], style: Style): string {
  const lines = reports.map((report) => {
    const found =
      "problem" in report ? `${style.warn("not looked at")}: ${report.problem}\n` : foundText(report.families, style);
    return `${style.bold(report.node)}: ${found}`;
  });
  const unseen = reports.filter((report) => "problem" in report).length;
  const differing = reports.filter((report) => "families" in report && differs(report.families)).length;
  const nodes = counted(reports.length, "node");
  const what = [
    ...(differing > 0 ? [`${differing} of ${nodes} ${differing === 1 ? "differs" : "differ"}`] : []),
    ...(unseen > 0 ? [`${unseen} of ${nodes} not looked at`] : []),
  ];
  if (what.length === 0) return `${lines.join("")}${verdictText(true, `nothing differs on ${nodes}`, "", style)}`;
  const next = differing > 0 ? NEXT : "fairlead status -o wide says which agents do not answer";
  return `${lines.join("")}${verdictText(false, what.join(", "), next, style)}`;
}

const NEXT =
  "fairlead explain SERVICE --on NODE says why, fairlead verify --on NODE --repair asks its agent for a full sync";

function differs(reports: readonly FamilyReport[]): boolean {
  return reports.some(({ services }) => services.length > 0);
}

/** Findings of one service that are shown. */
const MOST = 20;

/** Findings by family and service, and what they come to. */
export function reportText(reports: readonly FamilyReport[], style: Style): string {
  if (!differs(reports)) return `${notesIn(reports, style)}${verdictText(true, agreement(reports), "", style)}`;
  const names = new Set(reports.flatMap(({ services }) => services.flatMap(({ service }) => service ?? [])));
  const what = names.size === 0 ? "what all services share differs" : countedVerb(names.size);
  return `${foundText(reports, style)}${verdictText(false, what, NEXT, style)}`;
}

function countedVerb(count: number): string {
  return `${counted(count, "service")} ${count === 1 ? "differs" : "differ"}`;
}

function agreement(reports: readonly FamilyReport[]): string {
  return `nothing differs (${reports.map(({ family }) => family).join(", ")})`;
}

/** - is missing, + is too much, ~ is different. */
function foundText(reports: readonly FamilyReport[], style: Style): string {
  const all = reports.flatMap(({ family, services, planned }) =>
    services.map(({ service, kind, findings }) => {
      const shared = planned === 0 ? "base rules (no service has this family)" : "all services";
      const head = style.bold(`${service ?? shared} ${family}: ${style.bad(kind)}`);
      const shown = findings
        .slice(0, MOST)
        .map(({ kind: sort, where, what }) => `  ${SIGNS[sort]} ${where}: ${what}\n`);
      const more = findings.length > MOST ? [`  and ${findings.length - MOST} more\n`] : [];
      return [`${head}\n`, ...shown, ...more].join("");
    }),
  );
  const notes = notesIn(reports, style);
  if (all.length > 0) return [...otherConfiguration(reports, style), ...all, notes].join("");
  return `${agreement(reports)}\n${notes}`;
}

function notesIn(reports: readonly FamilyReport[], style: Style): string {
  const notes = reports.flatMap((report) => [
    ...unknownText(report, style),
    ...notesText(report),
    ...(report.fastPath === undefined ? [] : [`note, ${report.family}: ${report.fastPath}\n`]),
  ]);
  return notes.join("");
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

import type { Mode, ModeFinding } from "@fairlead/inspect";
import type { Style } from "../../../frame/style.ts";
import { findingsText } from "../../../output/findings.ts";
import type { NodeReport } from "./report.ts";

/** How many nodes and services are named in a line. */
const NAMED = 5;

/** What changes, for people: nodes with the same findings together. */
export function reportText(from: Mode, to: Mode, reports: readonly NodeReport[], style: Style): string {
  const head = `${style.bold(`From ${from} to ${to} mode`)}: ${summaryText(reports)}\n`;
  const groups = new Map<string, NodeReport[]>();
  for (const report of reports) {
    const key = JSON.stringify(report.findings);
    const alike = groups.get(key);
    if (alike === undefined) groups.set(key, [report]);
    else alike.push(report);
  }
  const parts = [...groups.values()].map((alike) => {
    const findings = alike[0]?.findings ?? [];
    return `\n${style.bold(listed(alike.map(({ node }) => node)))}\n${findingsText(findings.map(withServices), style)}`;
  });
  return [head, ...parts].join("");
}

function summaryText(reports: readonly NodeReport[]): string {
  const all = reports.flatMap(({ findings }) => findings);
  const blocked = reports.filter(({ findings }) => findings.some(({ state }) => state === "blocks"));
  const services = new Set(all.filter(({ state }) => state === "differs").flatMap(({ services: of = [] }) => of));
  const changing =
    services.size === 0
      ? "no service changes"
      : `${services.size} ${services.size === 1 ? "service changes" : "services change"}`;
  return blocked.length === 0 ? changing : `${changing}; ${listed(blocked.map(({ node }) => node))} cannot run it`;
}

function withServices(finding: ModeFinding): ModeFinding {
  const { services = [], state } = finding;
  if (services.length === 0 || state === "fits") return finding;
  return { ...finding, found: `${finding.found} (${listed(services)})` };
}

function listed(names: readonly string[]): string {
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : "";
  return `${names.slice(0, NAMED).join(", ")}${more}`;
}

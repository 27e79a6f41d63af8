import type { SuggestedCIDR } from "@fairlead/inspect";
import type { OwnershipRow } from "@fairlead/intake";
import type { Style } from "../../frame/style.ts";
import { tableText } from "../../output/table.ts";

export function ownershipText(
  rows: readonly OwnershipRow[],
  suggested: readonly SuggestedCIDR[],
  style: Style,
  wide = false,
): string {
  const head = ["service", "family", "owner", "own", "excluded", ...(wide ? ["frontends", "cidrs"] : []), "why"];
  const cellsOf = (row: OwnershipRow) => {
    const all = cells(row, style);
    const more = [row.frontends, row.decidingCIDRs.join(",") || "-"];
    return wide ? [...all.slice(0, -1), ...more, ...all.slice(-1)] : all;
  };
  const table = rows.length === 0 ? "" : tableText(head, rows.map(cellsOf));
  if (suggested.length === 0) return table;
  const lines = suggested.map(({ cidr, endpoints, services }) => {
    return `  ${cidr}   ${count(endpoints, "endpoint")} of ${count(services, "service")}\n`;
  });
  return `${table}\nNot in any CIDR given, perhaps another network's (--exclude-cluster-cidr):\n${lines.join("")}`;
}

/** Services that the API server calls and gets no answer of: a line each, below the table. */
export function callsText(
  calls: readonly { readonly service: string; readonly objects: readonly string[] }[] = [],
): string {
  if (calls.length === 0) return "";
  const lines = calls.map(({ service, objects }) => `  ${service}   ${named(objects)}\n`);
  return `\nCalled by the API server, and left unanswered for it (excludedFrontends: excluded-clients answers):\n${lines.join("")}`;
}

/** A row that has changed, while it is watched. */
export function changeText(row: OwnershipRow, style: Style): string {
  return `${cells(row, style).join("   ")}\n`;
}

export function goneText({ service, ipFamily }: OwnershipRow): string {
  return `${service}   ${ipFamily}   gone\n`;
}

function cells(
  { service, ipFamily, ownership, ownEndpoints, excludedEndpoints, why, learnedFrom = [], podNetwork }: OwnershipRow,
  style: Style,
): string[] {
  const objects = learnedFrom.flatMap((one) => one.objects);
  const source = objects.length === 0 ? "" : ` (${named(objects)})`;
  const owner = { ours: style.good, mixed: style.warn, foreign: style.dim }[ownership]?.(ownership) ?? ownership;
  return [
    service,
    ipFamily,
    owner,
    String(ownEndpoints),
    String(excludedEndpoints),
    `${why}${source}${placeText(podNetwork)}`,
  ];
}

/** Where its pods really are; `fairlead explain` says more. */
function placeText(network: OwnershipRow["podNetwork"]): string {
  if (network === undefined) return "";
  const { kind, name, addresses } = network;
  const at = addresses === undefined ? "" : `: ${named(addresses)}`;
  return `; its pods are in ${kind} ${name}${at}`;
}

/** The first few: many objects may say one CIDR. */
function named(objects: readonly string[]): string {
  const more = objects.length > 3 ? ` and ${objects.length - 3} more` : "";
  return `${objects.slice(0, 3).join(", ")}${more}`;
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}

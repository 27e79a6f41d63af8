import type { NodeStatus } from "@fairlead/inspect";
import type { Style } from "../../frame/style.ts";
import { tableText } from "../../output/table.ts";

export interface TextOptions {
  /** With owners of all kinds and the reasons why a node does not answer. */
  readonly wide: boolean;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** One row a node. */
export function statusText(rows: readonly NodeStatus[], options: TextOptions, style: Style): string {
  const head = ["node", "mode", "version", "healthy", "last sync", "owners", "differs"];
  return tableText(
    options.wide ? [...head, "age", "remark"] : head,
    rows.map((row) => cells(row, options, style)),
  );
}

/** What was shown last of each node. */
export type ShownRows = Map<string, string>;

/** The rows that say something else than they did; times alone do not count. */
export function changedRows(shown: ShownRows, rows: readonly NodeStatus[]): readonly NodeStatus[] {
  return rows.filter((row) => {
    const { readAt: _read, lastSync: _synced, ...said } = row;
    const text = JSON.stringify(said);
    const isNew = shown.get(row.node) !== text;
    shown.set(row.node, text);
    return isNew;
  });
}

function cells(row: NodeStatus, { wide, now }: TextOptions, style: Style): readonly string[] {
  const { node, version, program, lastSync, readAt, problem = "" } = row;
  const name = program === "kube-proxy" ? `kube-proxy ${version}` : version;
  const narrow = [
    node,
    modeText(row),
    name ?? "-",
    healthText(row, style),
    ageText(lastSync, now),
    ownersText(row),
    differsText(row, style),
  ];
  return wide ? [...narrow, ageText(readAt, now), problem] : narrow;
}

/** With the service proxy name of an agent that has one: `nftables (edge)`. */
function modeText({ mode = "-", serviceProxyName }: NodeStatus): string {
  return serviceProxyName === undefined ? mode : `${mode} (${serviceProxyName})`;
}

function healthText({ answers, healthy }: NodeStatus, style: Style): string {
  if (!answers) return style.bad("no answer");
  if (healthy === undefined) return "-";
  return healthy ? style.good("yes") : style.bad("no");
}

/** `12 s ago` */
function ageText(time: string | undefined, now: number): string {
  if (time === undefined) return "-";
  const seconds = Math.max(0, Math.round((now - Date.parse(time)) / 1000));
  if (seconds < 120) return `${seconds} s ago`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min ago` : `${Math.round(seconds / 3600)} h ago`;
}

function ownersText({ owners }: NodeStatus): string {
  if (owners === undefined) return "-";
  const parts = (["ours", "foreign", "mixed"] as const).filter((owner) => owner === "ours" || owners[owner] > 0);
  return parts.map((owner) => `${owners[owner]} ${owner}`).join(", ");
}

function differsText({ differences }: NodeStatus, style: Style): string {
  if (differences === undefined) return "-";
  return differences === 0
    ? style.good("nothing")
    : style.bad(differences === 1 ? "1 service" : `${differences} services`);
}

import type { Style } from "../../frame/style.ts";
import { tableText } from "../../output/table.ts";
import { PLACES, type Place } from "./model.ts";
import type { Case } from "./plan.ts";

/** What came of a case. */
export interface Judged extends Pick<Case, "service" | "frontend" | "policy" | "family" | "place"> {
  /** Where the packet was sent: `10.96.0.10:80`, or a name. */
  readonly to: string;
  /** What is wrong; absent: it is right. */
  readonly complaint?: string;
}

/** One of what is not asked from places: affinity's rest, a rolling update, another network's service. */
export interface Check {
  readonly name: string;
  /** Absent: it is right. */
  readonly complaint?: string;
  /** Why it was not done. */
  readonly skipped?: string;
}

const HEADS: Readonly<Record<Place, string>> = {
  "pod-here": "pod here",
  "pod-there": "pod there",
  "node-here": "node here",
  "node-there": "node there",
  outside: "outside",
};

/** A row for each frontend, a column for each place; what is wrong below. */
export function reportText(cases: readonly Judged[], checks: readonly Check[], style: Style): string {
  const rows = new Map<string, Judged[]>();
  for (const one of cases) {
    const key = [one.service, one.frontend, one.policy, one.family].join("|");
    rows.set(key, [...(rows.get(key) ?? []), one]);
  }
  const head = ["service", "frontend", "policy", "family", ...PLACES.map((place) => HEADS[place])];
  const table = tableText(
    head,
    Array.from(rows.values(), (row) => rowOf(row, style)),
  );
  const wrong = cases.flatMap((one) => (one.complaint === undefined ? [] : [`${style.bad("✗")} ${caseText(one)}\n`]));
  return [table, "\n", ...checks.map((check) => checkText(check, style)), ...wrong].join("");
}

function rowOf(row: readonly Judged[], style: Style): readonly string[] {
  const [first] = row;
  const cells = PLACES.map((place) => {
    const here = row.filter((one) => one.place === place);
    if (here.length === 0) return "-";
    return here.some(({ complaint }) => complaint !== undefined) ? style.bad("FAIL") : style.good("ok");
  });
  return [first?.service ?? "", first?.frontend ?? "", first?.policy ?? "", first?.family ?? "", ...cells];
}

function caseText({ service, frontend, policy, place, to, complaint }: Judged): string {
  return `${service}: ${frontend} ${to} (${policy}) from ${HEADS[place]}: ${complaint}`;
}

function checkText({ name, complaint, skipped }: Check, style: Style): string {
  if (skipped !== undefined) return `${style.dim("-")} ${name}: not tested: ${skipped}\n`;
  return complaint === undefined ? `${style.good("✓")} ${name}\n` : `${style.bad("✗")} ${name}: ${complaint}\n`;
}

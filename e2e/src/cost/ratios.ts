import { type Counts, UNITS, type Unit } from "./measure.ts";
import { SUBJECTS, type Subject } from "./rules.ts";

/** The rules that the others are compared with. */
const BASE = "kube-proxy";

/** Instructions relative to kube-proxy's in the same guest run. */
export function ratio({ instructions }: Counts, subject: Subject, unit: Unit): number | undefined {
  const [own, base] = [instructions[subject][unit], instructions[BASE][unit]];
  return own === undefined || base === undefined ? undefined : own / base;
}

/** A table for Markdown: a row for each unit that was counted. */
export function countsTable(counts: Counts): string {
  const others = SUBJECTS.filter((subject) => subject !== BASE);
  const units = (Object.keys(UNITS) as Unit[]).filter((unit) => counts.instructions[BASE][unit] !== undefined);
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const lines = units.map((unit) => [
    UNITS[unit].what,
    Math.round(counts.instructions[BASE][unit] ?? 0).toLocaleString("en-US"),
    ...others.map((subject) => (ratio(counts, subject, unit) ?? 0).toFixed(2)),
  ]);
  const head = [`Linux ${counts.release}`, `${BASE}, instructions`, ...others];
  return [head, head.map(() => "---"), ...lines].map(row).join("\n");
}

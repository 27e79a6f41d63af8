import { type Durations, durationKey } from "../report/durations.ts";
import type { PlannedSpec } from "./plan.ts";

/** `pnpm e2e --list`: each spec of a cluster, what it needs of it, and how long it took the last time. */
export function listText(mode: string, planned: readonly PlannedSpec[], durations: Durations): string {
  const rows = planned.map(({ spec, title, unfit }) => {
    const ms = durations[durationKey(mode, title)];
    const needs = [
      ...(spec.alone === true ? ["runs by itself"] : []),
      ...(unfit === undefined ? [] : [`not here: ${unfit}`]),
    ];
    const time = ms === undefined ? "–" : `${(ms / 1000).toFixed(1)} s`;
    return `  ${time.padStart(8)}  ${spec.suite.padEnd(12)}  ${title}${needs.length === 0 ? "" : ` (${needs.join("; ")})`}`;
  });
  const known = planned.map(({ title }) => durations[durationKey(mode, title)]).filter((ms) => ms !== undefined);
  const sum = known.reduce((total, ms) => total + ms, 0) / 60_000;
  const last =
    known.length === 0
      ? "none has run in this checkout yet"
      : `${known.length} of ${planned.length} have run in this checkout, ${sum.toFixed(1)} minutes one after the other`;
  return [...rows, "", `  ${last}; up to three run at once`].join("\n");
}

import type { Met } from "./followed-crowd.ts";
import type { LivedThrough } from "./life.ts";

/** For people: what came of each step. */
export function lifeReport(who: string, { met, split }: LivedThrough): string {
  const several = `${split.IPv4} clients of IPv4 and ${split.IPv6} of IPv6 came to several endpoints at once`;
  return `${who}: ${several}\n${metReport(met)}`;
}

export function metReport(met: readonly Met[]): string {
  return met
    .map(({ step, family, known, moved, wrong = "" }) => `  ${step}, ${family}: ${moved} of ${known} moved ${wrong}\n`)
    .join("");
}

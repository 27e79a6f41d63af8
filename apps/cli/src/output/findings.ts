import type { Style } from "../frame/style.ts";

/** One thing that was looked at, of a survey or of a change of the mode. */
interface Finding {
  readonly topic: string;
  readonly state: "fits" | "differs" | "blocks" | "unknown";
  readonly found: string;
  readonly advice?: string;
}

/** A line for each, with a sign, and what can be done about it. */
export function findingsText(findings: readonly Finding[], style: Style): string {
  const signs = { fits: style.good("✓"), differs: style.warn("!"), blocks: style.bad("✗"), unknown: style.warn("?") };
  return findings
    .map(({ topic, state, found, advice }) => {
      const what = advice === undefined ? "" : `\n    ${style.bold("→")} ${advice}`;
      return `${signs[state]} ${topic}: ${found}${what}\n`;
    })
    .join("");
}

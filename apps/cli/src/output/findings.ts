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

/**
 * The last line of an answer: `OK: 3 nodes`, `FAIL: 1 of 3 nodes; next: …`.
 *
 * @param next what to do where it is not good
 */
export function verdictText(isGood: boolean, what: string, next: string, style: Style): string {
  return isGood ? `${style.good("OK")}: ${what}\n` : `${style.bad("FAIL")}: ${what}; next: ${next}\n`;
}

/** `1 node`, `2 nodes` */
export function counted(count: number, name: string): string {
  return `${count} ${name}${count === 1 ? "" : "s"}`;
}

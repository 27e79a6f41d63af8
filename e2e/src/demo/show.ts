import {
  addedLive,
  affinity,
  foreignService,
  foundingCase,
  masquerading,
  nobodyThere,
  nodePort,
  removedLive,
  spread,
} from "./checks.ts";
import type { Check, DemoEnvironment, Finding } from "./stage.ts";

const NAME = 17;
const REQUEST = 42;

const tableHead = `  ${"CHECK".padEnd(NAME)}${"REQUEST".padEnd(REQUEST)}SEEN`;

const checks: readonly Check[] = [
  foundingCase,
  spread,
  removedLive,
  addedLive,
  affinity,
  nodePort,
  masquerading,
  nobodyThere,
  foreignService,
];

/** Runs every check, each of them printed as soon as it is known. */
export async function play(stage: DemoEnvironment, print: (line: string) => void): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  print(tableHead);
  for (const check of stage.checks ?? checks) {
    for (const finding of await check(stage)) {
      print(tableLine(finding, findings.at(-1)));
      findings.push(finding);
    }
  }
  return findings;
}

/** The closing line: what it proved, or what failed. */
export function verdict(stage: DemoEnvironment, findings: readonly Finding[], left: readonly string[]): string {
  const failed = findings.filter(({ ok }) => !ok);
  const problems = [
    ...failed.map(({ name, request, seen }) => `${name} (${request}): ${seen}`),
    ...left.map((what) => `left behind: ${what}`),
  ];
  if (problems.length > 0) return ["Failed:", ...problems.map((problem) => `  ${problem}`)].join("\n");
  return `Proved ${stage.proof}, ${findings.length} of ${findings.length} checks: our services are served, the other network's are left alone, nothing is left behind.`;
}

/** One line of the table; a name that the line before had already is left out. */
function tableLine({ name, request, seen, ok }: Finding, before: Finding | undefined): string {
  const shown = before?.name === name ? "" : name;
  return `${ok ? "✓" : "✗"} ${shown.padEnd(NAME)}${request.padEnd(REQUEST)}${seen}`;
}

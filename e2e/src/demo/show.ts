import { foreignService } from "./checks/foreign.ts";
import { addedLive, removedLive } from "./checks/live.ts";
import { affinity, foundingCase, masquerading, nobodyThere, nodePort, spread } from "./checks/services.ts";
import type { Check, DemoEnvironment, Finding } from "./stage.ts";
import { tableHead, tableLine } from "./table.ts";

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

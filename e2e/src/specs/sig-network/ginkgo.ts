/** What came of a run of Kubernetes' own specs. */
export interface GinkgoResult {
  readonly passed: number;
  readonly failed: number;
  /** How many were chosen. */
  readonly ran: number;
  /** Names of those that failed. */
  readonly failures: readonly string[];
}

const COUNTS = /-- (\d+) Passed \| (\d+) Failed \|/;
const RAN = /^Ran (\d+) of \d+ Specs/m;
const FAILURE = /^\s*\[(?:FAIL|PANICKED|TIMEDOUT|INTERRUPTED)\] (.*)$/gm;

/** Reads Ginkgo's own words, without colors; undefined: it has not come to its summary. */
export function readGinkgo(output: string): GinkgoResult | undefined {
  const [, passed, failed] = COUNTS.exec(output) ?? [];
  const [, ran] = RAN.exec(output) ?? [];
  if (passed === undefined || failed === undefined || ran === undefined) return undefined;
  const summary = output.slice(output.lastIndexOf("Summarizing"));
  const failures = Number(failed) === 0 ? [] : [...summary.matchAll(FAILURE)].map(([, name = ""]) => name.trim());
  return { passed: Number(passed), failed: Number(failed), ran: Number(ran), failures };
}

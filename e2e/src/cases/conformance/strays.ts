import type { Lab } from "@fairlead/lab/plain/lab";
import { type ConformanceCase, differences, expectedWays, type Outcome } from "@fairlead/testkit";
import { type ProbeOptions, probeCase } from "./probe-case.ts";

/** What real packets did that they should not, or never did that they should; empty where they did as expected. */
export async function strays(
  lab: Lab,
  row: ConformanceCase,
  expected: Outcome,
  options?: ProbeOptions,
): Promise<readonly string[]> {
  const observed = await probeCase(lab, row, expected, options);
  const differ = differences(expectedWays(expected), observed, { probabilities: false });
  if (!row.sticky) return differ;
  const wrong = differ.filter((text) => text.startsWith("went"));
  return observed.size === 1 ? wrong : [...wrong, `did not stay with one endpoint: ${[...observed.keys()].join(", ")}`];
}

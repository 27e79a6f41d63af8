import type { ClusterNode } from "@fairlead/lab/provider/cluster";
import { until } from "../until.ts";

/**
 * Waits for a line in the log of a node's agent.
 *
 * @param before what the log was; lines of it do not count
 * @returns how long that took, in words
 * @throws Error when there is none in time
 */
export async function untilLogged(
  { agent }: ClusterNode,
  before: string,
  wanted: RegExp,
  withinMs: number,
): Promise<string> {
  const began = performance.now();
  await until(
    `a line in the agent's log like ${wanted.source}`,
    async () =>
      (await agent.log())
        .slice(before.length)
        .split("\n")
        .some((line) => wanted.test(line))
        ? undefined
        : "none",
    withinMs,
  );
  return `${((performance.now() - began) / 1000).toFixed(1)} s`;
}

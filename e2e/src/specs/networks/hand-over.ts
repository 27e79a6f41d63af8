import type { ProbeResult } from "@fairlead/lab/peer/protocol";
import type { Client } from "@fairlead/lab/provider/cluster";
import type { Target } from "../expect.ts";

/** A service that changes hands, as somebody sees it who asks it all the while. */
interface ServiceProbe {
  readonly from: Client;
  readonly target: Target;
}

const ROUND = { protocol: "TCP", count: 8, parallel: 2, timeoutMs: 5_000 } as const;
const PATIENCE_MS = 90_000;

/** Asks from now on until nothing answers any more. @returns when that was known, in milliseconds from now */
export function untilLeft(asked: ServiceProbe): Promise<number> {
  return untilAll(asked, "no answer", ({ kind }) => kind !== "answer");
}

/** Asks from now on until everybody is answered. @returns when the first of those answers came, in milliseconds */
export function untilServed(asked: ServiceProbe): Promise<number> {
  return untilAll(asked, "an answer", ({ kind }) => kind === "answer");
}

/**
 * Asks without a pause until a whole round is as it is wanted.
 *
 * @returns when the first of those requests ended after which none was otherwise
 * @throws Error when there is no such round in time
 */
async function untilAll(
  { from, target }: ServiceProbe,
  what: string,
  wanted: (result: ProbeResult) => boolean,
): Promise<number> {
  const began = performance.timeOrigin + performance.now();
  let since: number | undefined;
  while (performance.timeOrigin + performance.now() < began + PATIENCE_MS) {
    const results = [...(await from.send({ ...ROUND, ...target }))].sort((one, other) => one.at - other.at);
    for (const result of results) since = wanted(result) ? (since ?? result.at) : undefined;
    if (since !== undefined && results.every(wanted)) return since - began;
  }
  throw new Error(`wanted ${what} at ${target.to} within ${PATIENCE_MS} ms`);
}

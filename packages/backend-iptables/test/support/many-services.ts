import type { Backend, ForwardingPlan } from "@fairlead/core";
import { clusterIPGroup, endpoints, planOf } from "./groups.ts";

/** Services with two endpoints each, and behind them some without. */
export function manyServices({
  served,
  without,
}: {
  readonly served: number;
  readonly without: number;
}): ForwardingPlan {
  const group = (at: number) => {
    const cluster = at < served ? endpoints(2, { from: 2 * at }) : [];
    return clusterIPGroup(`service-${at}`, `10.96.${at >> 8}.${at & 255}`, cluster);
  };
  return planOf(Array.from({ length: served + without }, (_, at) => group(at)));
}

/**
 * Syncs as often as an agent would.
 *
 * @returns how many times the kernel had no room for a transaction
 */
export async function syncUntilTaken(backend: Backend, plan: ForwardingPlan): Promise<number> {
  for (let refused = 0; refused < 20; refused++) {
    const error = await backend.sync(plan).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (error === undefined) return refused;
    if (!(error instanceof Error && "kind" in error && error.kind === "too-large")) throw error;
  }
  throw new Error("refused 20 times");
}

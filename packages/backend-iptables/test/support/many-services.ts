import type { Backend, ForwardingPlan } from "@fairlead/core";
import { FakeIptables } from "@fairlead/kernel/fake";
import { clusterIPGroup, endpoints, planOf } from "@fairlead/testkit/plans";
import { expect } from "vitest";
import { createIptablesBackend } from "../../src/index.ts";
import type { RecordingPort } from "./recording-port.ts";

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

/** Endpoints up to which a set has one chain. */
export const FLAT = 5_000;

export function planWith(count: number, affinity = false): ForwardingPlan {
  const more = affinity ? { affinitySeconds: 60 } : {};
  return planOf([clusterIPGroup("large", "10.96.0.80", endpoints(count), more)]);
}

export async function fresh(plan: ForwardingPlan) {
  const fake = new FakeIptables({ family: "IPv4", variant: "nft" });
  await createIptablesBackend(fake).sync(plan);
  return fake.ruleSet();
}

/** What was written since the last look is one transaction, of one page and what leads to it. */
export function expectOnePage(port: RecordingPort, most: number): void {
  const [sizes = [], ...others] = port.take().map((sections) => sections.map(({ commands }) => commands.length));
  expect(others).toEqual([]);
  expect(sizes).toHaveLength(1);
  expect(sizes[0]).toBeLessThan(most);
}

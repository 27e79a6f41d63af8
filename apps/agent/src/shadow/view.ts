import type { IPFamily } from "@fairlead/core";
import { DIFFERENCE_KINDS, type DifferenceKind, type TrackedDifference } from "@fairlead/inspect";
import type { MetricFactory } from "../metrics/registry.ts";
import type { ShadowView } from "../run/parts.ts";
import type { ShadowFamily } from "./family.ts";
import type { SeenMode } from "./modes.ts";

/** What is seen of one family. */
export type SeenFamily = Pick<ShadowFamily, "family" | "suspicions" | "problem" | "round">;

/** Services of each page and family that are listed one by one. */
const MOST_TOLD = 200;

/** The metrics and the page of a shadow run. */
export function shadowView(mode: Pick<SeenMode, "name">, families: readonly SeenFamily[], grace: number): ShadowView {
  return {
    addMetrics: (make) => addMetrics(make, families),
    page: () => ({
      mode: mode.name,
      gracePeriodSeconds: grace / 1000,
      families: Object.fromEntries(families.map((one) => [one.family, pageOf(one)])),
    }),
  };
}

function addMetrics(make: MetricFactory, families: readonly SeenFamily[]): () => void {
  const labels = ["ip_family"] as const;
  const differences = make.gauge(
    "fairlead_shadow_differences",
    "Service ports for which kube-proxy has differed from Fairlead's plan for longer than the grace period",
    ["ip_family", "kind"] as const,
  );
  const problem = make.gauge(
    "fairlead_shadow_blind",
    "1 while the kernel cannot be read and the comparison is paused",
    labels,
  );
  const services = make.gauge(
    "fairlead_shadow_compared_services",
    "Service ports in the last round through all of them",
    labels,
  );
  const ended = make.gauge(
    "fairlead_shadow_last_round_timestamp_seconds",
    "When the last round through all services ended",
    labels,
  );
  const took = make.gauge(
    "fairlead_shadow_last_round_seconds",
    "Duration of the last round through all services",
    labels,
  );
  return () => {
    for (const { family, suspicions, problem: why, round } of families) {
      const label = { ip_family: family };
      for (const [kind, count] of countsOf(suspicions)) differences.set({ ...label, kind }, count);
      problem.set(label, why === undefined ? 0 : 1);
      services.set(label, round?.services ?? 0);
      ended.set(label, (round?.at ?? 0) / 1000);
      took.set(label, (round?.milliseconds ?? 0) / 1000);
    }
  };
}

/** By the kind of each subject's first difference. */
function countsOf(suspicions: readonly TrackedDifference[]): ReadonlyMap<DifferenceKind, number> {
  const counts = new Map<DifferenceKind, number>(DIFFERENCE_KINDS.map((kind) => [kind, 0]));
  for (const { lasting, differences } of suspicions) {
    const [first] = differences;
    if (lasting && first !== undefined) counts.set(first.kind, (counts.get(first.kind) ?? 0) + 1);
  }
  return counts;
}

interface FamilyPage {
  readonly family: IPFamily;
  readonly differing: number;
}

function pageOf({ family, suspicions, problem, round }: SeenFamily): FamilyPage & Readonly<Record<string, unknown>> {
  const lasting = suspicions.filter((one) => one.lasting);
  return {
    family,
    ...(problem !== undefined && { problem }),
    lastRound: round && {
      at: new Date(round.at).toISOString(),
      seconds: round.milliseconds / 1000,
      services: round.services,
    },
    differing: lasting.length,
    withinGrace: suspicions.length - lasting.length,
    services: lasting.slice(0, MOST_TOLD).map(({ subject, differences }) => ({ name: subject.name, differences })),
  };
}

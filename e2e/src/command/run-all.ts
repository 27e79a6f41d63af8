import type { Cluster } from "@fairlead/lab/provider/cluster";
import { messageOf } from "@fairlead/lab/support/processes";
import { keepArtifacts } from "../report/artifacts.ts";
import type { Outcome, Result } from "../report/outcome.ts";
import { runSpec } from "../specs/run-spec.ts";
import { familyField, type PlannedSpec } from "./plan.ts";

export interface RunAll {
  readonly cluster: Cluster;
  readonly planned: readonly PlannedSpec[];
  /** Where the state of the cluster is kept when a spec fails. */
  readonly artifacts: string;
  /** Told of each as it ends. */
  readonly onOutcome: (outcome: Outcome) => void;
  /** No further spec begins once it is aborted. */
  readonly signal: AbortSignal;
}

/** Specs mostly wait; so many at once do not disturb each other on two cores. */
const LANES = 3;

/** Runs the specs, some at a time, and then those that want to be only. */
export async function runAll(run: RunAll): Promise<readonly Outcome[]> {
  const { planned, cluster, onOutcome } = run;
  const outcomes: Outcome[] = [];
  const one = async (item: PlannedSpec, number: number) => {
    const started = performance.now();
    const result = await runOne(run, item, `spec-${number}`);
    const { name, suite } = item.spec;
    const ms = performance.now() - started;
    const outcome = { name, suite, mode: cluster.mode, ...familyField(item.spec, item.family), ms, result };
    outcomes.push(outcome);
    onOutcome(outcome);
  };
  const queue = planned.map((item, index) => [item, index + 1] as const);
  const alone = queue.filter(([{ spec }]) => spec.alone === true);
  const together = queue.filter(([{ spec }]) => spec.alone !== true);
  await drain(together, LANES, run.signal, one);
  await drain(alone, 1, run.signal, one);
  return outcomes;
}

async function drain(
  queue: readonly (readonly [PlannedSpec, number])[],
  lanes: number,
  signal: AbortSignal,
  one: (item: PlannedSpec, number: number) => Promise<void>,
): Promise<void> {
  const waiting = [...queue];
  const lane = async () => {
    for (let next = waiting.shift(); next !== undefined && !signal.aborted; next = waiting.shift()) await one(...next);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

async function runOne({ cluster, artifacts, signal }: RunAll, item: PlannedSpec, namespace: string): Promise<Result> {
  const { spec, family, title, unfit } = item;
  if (unfit !== undefined) return { kind: "skipped", reason: unfit };
  let kept: string | undefined;
  try {
    const figures = await runSpec(spec, cluster, family, namespace, async (error) => {
      // Ctrl-C reaches the cluster's processes too: what fails then has found nothing.
      if (!signal.aborted) kept = await keepArtifacts(artifacts, `${cluster.mode}-${title}`, cluster, error);
    });
    return { kind: "passed", ...(figures !== undefined && { figures }) };
  } catch (error) {
    if (signal.aborted) return { kind: "skipped", reason: "interrupted" };
    return { kind: "failed", message: messageOf(error), ...(kept !== undefined && { artifacts: kept }) };
  }
}

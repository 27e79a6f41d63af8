import type { Lab } from "@fairlead/lab/plain/lab";
import { type RawObject, webA1, webB1, workload } from "@fairlead/testkit";
import { type BesideSettings, openBeside } from "./beside.ts";
import { randomStates } from "./states.ts";

/** A shadow may have been given a long grace. */
const TOLD_MS = 300_000;
/** Many states take their time: how far it has come is said each time. */
const TOLD_EVERY = 20;

/** What the log says when a service begins to differ for good. */
const DIFFERS = "kube-proxy differs from the plan";

interface Agreement {
  readonly mode: string;
  /** The log lines of services that differed. */
  readonly differences: readonly string[];
  /** What the kernel held before and after a change that nobody programmed. */
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/** A state may be that before it, with nothing to write and nothing to look at: this makes it another. */
function another(turn: number): readonly RawObject[] {
  return workload(98, { endpoints: [turn % 2 === 0 ? webA1 : webB1] }).objects;
}

/**
 * Has kube-proxy program random states of a cluster, one after the other, each until the shadow agrees with it; then
 * kube-proxy is killed and one more state is put, which the shadow tells and does not program.
 *
 * @param held what the kernel holds
 */
export async function statesAgree(
  lab: Lab,
  settings: BesideSettings,
  held: () => Promise<readonly string[]>,
): Promise<Agreement> {
  const { FAIRLEAD_SHADOW_STATES = "12", FAIRLEAD_SHADOW_SKIPPED = "0", FAIRLEAD_SHADOW_SEED = "1" } = process.env;
  const states = randomStates(Number(FAIRLEAD_SHADOW_STATES), Number(FAIRLEAD_SHADOW_SEED));
  const skipped = Number(FAIRLEAD_SHADOW_SKIPPED);
  // Each state is some services only: it begins with what those before would have left.
  const first = states.slice(0, skipped + 1).flat();
  const others = states.slice(skipped + 1);
  await using beside = await openBeside(lab, settings, first);
  const { mode } = await beside.agreed(0);
  for (const [turn, state] of others.entries()) {
    const since = Date.now();
    await beside.put([...state, ...another(turn)]);
    await beside.agreed(since);
    if ((turn + 1) % TOLD_EVERY === 0) process.stderr.write(`shadow, ${mode}: ${skipped + turn + 2} states agreed\n`);
  }
  const lines = beside.shadow.log().split("\n");
  await beside.killKubeProxy();
  const before = await held();
  await beside.put(workload(99, { endpoints: [webA1] }).objects);
  await beside.told("what nobody programs", TOLD_MS);
  return { mode, differences: lines.filter((line) => line.includes(DIFFERS)), before, after: await held() };
}

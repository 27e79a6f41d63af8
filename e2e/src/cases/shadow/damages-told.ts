import type { Lab } from "@fairlead/lab/plain/lab";
import { type BesideSettings, openBeside } from "./beside.ts";
import type { KernelDamage, Mending } from "./damages.ts";
import { damagedObjects } from "./objects.ts";

/** What the shadow has for a damage: its grace, its pace, and a machine that does other things as well. */
const TOLD_MS = 300_000;

/** A damage, and after how many milliseconds the shadow told it. */
interface ToldDamage extends Pick<KernelDamage, "what" | "kind"> {
  readonly afterMs: number;
}

/** Inflicts the damages one by one on what kube-proxy wrote, each until it is told, and mends it. */
export async function* damagesTold(
  lab: Lab,
  settings: BesideSettings,
  { damages, mending }: { readonly damages: readonly KernelDamage[]; readonly mending: Mending },
): AsyncGenerator<ToldDamage, void, void> {
  await using beside = await openBeside(lab, settings, damagedObjects);
  await beside.agreed(0);
  // It would mend some of them.
  await beside.killKubeProxy();
  const runner = lab.runner("node-a");
  const mend = await mending(runner);
  for (const { what, kind, inflict } of damages) {
    await inflict(runner);
    yield { what, kind, afterMs: await beside.told(what, TOLD_MS, kind) };
    const since = Date.now();
    await mend();
    await beside.agreed(since);
  }
}

import { type Clock, sleep } from "@fairlead/base";
import type { KernelReader } from "@fairlead/kernel";
import type { Log } from "../log/log.ts";
import type { ShadowFamily } from "./family.ts";
import { type SeenMode, seenMode } from "./modes.ts";

/** Milliseconds between two looks, and the least. */
const EVERY_MS = 2_000;
const SOONEST_MS = 200;
/** So many times as long as a look took nothing is done after it. */
const REST = 3;
/** Looks in a row that find another mode: a proxy that starts takes its old rules away first. */
const SURE = 5;

export interface ShadowWatch {
  readonly kernel: KernelReader;
  readonly mode: SeenMode;
  readonly families: readonly ShadowFamily[];
  readonly clock: Clock;
  readonly log: Log;
  /** The other proxy runs in another mode now: everything would have to be planned anew. */
  readonly onOtherMode: (name: string) => void;
}

/** Looks again and again until the signal aborts; never rejects. */
export async function watchKernel(watch: ShadowWatch, signal: AbortSignal): Promise<void> {
  const { families, clock } = watch;
  const told = new Map<ShadowFamily, string | undefined>();
  let others = 0;
  while (!signal.aborted) {
    const began = clock.monotonic();
    for (const family of families) {
      await family.look();
      logProblem(watch.log, family, told.get(family));
      told.set(family, family.problem);
    }
    const other = await otherMode(watch);
    others = other === undefined ? 0 : others + 1;
    if (other !== undefined && others >= SURE) return watch.onOtherMode(other);
    await sleep(clock, Math.max(pause(families), REST * (clock.monotonic() - began)), signal);
  }
}

/** Until the next look is due, which is earlier where something that differs will have done so for the grace. */
function pause(families: readonly ShadowFamily[]): number {
  const waits = families.flatMap(({ nextIn }) => nextIn ?? []);
  return Math.max(SOONEST_MS, Math.min(EVERY_MS, ...waits));
}

/** Undefined: none is seen. */
async function otherMode({ kernel, mode, families }: ShadowWatch): Promise<string | undefined> {
  // While everything agrees it cannot be.
  if (families.every(({ suspicions }) => suspicions.length === 0)) return undefined;
  const found = await seenMode(kernel).catch(() => undefined);
  return found?.name === mode.name ? undefined : found?.name;
}

function logProblem(log: Log, { family, problem }: ShadowFamily, before: string | undefined): void {
  if (problem === before) return;
  if (problem === undefined) log.info("Kernel can be read again", { ipFamily: family });
  else log.warn("Cannot read the kernel; comparison paused, retrying", { ipFamily: family, error: problem });
}

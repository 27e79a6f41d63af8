import { getHeapStatistics, setFlagsFromString } from "node:v8";

/** With more than this on it a heap is one of thousands of services, and its start is long enough to be optimized. */
const LARGE_BYTES = 40_000_000;
/** A start is over by then, and what follows the first sync. */
const RESTS_MS = 30_000;
const LOOK_EVERY_MS = 20;

/** V8 is the process's. */
let looking: NodeJS.Timeout | undefined;

/**
 * Sets V8 up for a proxy, which idles after a burst of reading, alongside tools that need the other core. The young
 * generation keeps its first size, and is collected by the thread that filled it. Nothing is optimized in the start of
 * a small cluster, which is over before it pays: that saves 15 MB and the time of V8's own threads.
 */
export function setUpEngine(): void {
  setFlagsFromString("--semi-space-growth-factor=1");
  setFlagsFromString("--no-parallel-scavenge");
  optimize(false);
  looking = setInterval(() => {
    if (getHeapStatistics().used_heap_size < LARGE_BYTES) return;
    optimize(true);
    clearInterval(looking);
  }, LOOK_EVERY_MS).unref();
  setTimeout(() => {
    clearInterval(looking);
    optimize(true);
  }, RESTS_MS).unref();
}

/**
 * Called after the first sync. From now on V8 rather collects than grows, as a heap that grew once stays resident for
 * good; what the start has left is collected in some seconds. In a start itself that would be a tenth of its processor
 * time: it would mark again and again what stays. 50 looks a second would cost as much.
 */
export function keepHeapSmall(): void {
  clearInterval(looking);
  setFlagsFromString("--optimize-for-size");
}

function optimize(on: boolean): void {
  for (const compiler of ["maglev", "opt"]) setFlagsFromString(on ? `--${compiler}` : `--no-${compiler}`);
}

import type { Cluster, ClusterShape } from "@fairlead/lab/provider/cluster";
import { UsageError } from "./options.ts";
import type { RunFolder } from "./run-folder.ts";

/** @throws UsageError where nobody could look around in what is kept */
export function checkKeep({ mode, ownKernel }: ClusterShape): void {
  if (ownKernel !== true) return;
  throw new UsageError(
    `--keep with --mode ${mode}: the cluster is in User-Mode Linux, which cannot be entered; leave --keep out (a failed spec keeps rules, states and logs of every node)`,
  );
}

/** Says how to look around, and waits until the signal aborts. */
export async function keepRunning({ tour }: Cluster, folder: RunFolder, signal: AbortSignal): Promise<void> {
  await folder.markKept();
  const lines = [
    "",
    "Still running; look around, Ctrl-C or `pnpm e2e down` ends it:",
    ...tour.map((line) => `  ${line}`),
  ];
  console.log(lines.join("\n"));
  // Without a timer a process that only waits for a signal would end.
  const alive = setInterval(() => {}, 60_000);
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  clearInterval(alive);
}

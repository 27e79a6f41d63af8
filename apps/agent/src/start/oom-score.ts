import { writeFile } from "node:fs/promises";
import { errorChainText } from "@fairlead/base";
import type { Log } from "../log/log.ts";

/** Tells the kernel how late to choose this process when memory runs out. Lowering it needs CAP_SYS_RESOURCE. */
export async function adjustOOMScore(score: number, log: Log): Promise<void> {
  await writeFile("/proc/self/oom_score_adj", String(score)).catch((error: unknown) =>
    log.verbose(2, "Cannot set the OOM score; it stays unchanged", {
      oomScoreAdj: score,
      error: errorChainText(error),
    }),
  );
}

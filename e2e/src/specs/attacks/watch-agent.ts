import { setTimeout as sleep } from "node:timers/promises";
import { type ClusterNode, NODE_PORTS } from "@fairlead/lab/provider/cluster";
import { forgetPeak, isRunning, peakMiB, processId } from "@fairlead/lab/support/processes";
import { able } from "../needs.ts";
import type { Scene } from "../scene.ts";
import type { Figures } from "../spec.ts";
import type { LivezReport } from "./programs/livez-main.ts";

/** What an agent has to keep to while it is attacked. */
export interface Limits {
  /** Resident memory at its highest. */
  readonly mostMiB: number;
  /** /livez may say that it is not well, as long as it says it at once. */
  readonly mayBeUnwell: boolean;
}

export interface AgentWatch {
  /**
   * Rejects when the process ends, or has not answered for so long that the rest of the attack would show nothing more.
   */
  readonly ended: Promise<never>;
  /** @throws Error that says what it has not kept to */
  finish(limits: Partial<Limits>): Promise<Figures>;
}

const HEALTH_PORT = "10256";
const LIVEZ_MS = 1_000;
const MOST_MIB = 256;
const LOOK_MS = 250;
const SILENT_MS = 20_000;
const LAST_LINES = 8;
const PROBER = new URL("programs/livez-main.ts", import.meta.url).pathname;

/** Watches the process of a node's agent, its memory and /livez, until the spec ends. */
export async function watchAgent({ agent, startScript }: ClusterNode, later: Scene["later"]): Promise<AgentWatch> {
  const pid = able(agent.pid)();
  const id = await processId(pid);
  await forgetPeak(pid);
  const prober = await able(startScript)(PROBER, [HEALTH_PORT, String(NODE_PORTS.tcp[0])]);
  let over = false;
  later(async () => {
    over = true;
    await prober.stop();
  });
  const look = async (): Promise<LivezReport> => JSON.parse(await prober.ask("seen"));
  const lastWords = async () => (await agent.log()).trimEnd().split("\n").slice(-LAST_LINES).join("\n");
  const watch = async (): Promise<never> => {
    while (!over && (await isRunning(id))) {
      const { slowest } = await look();
      if (slowest > SILENT_MS) throw new Error(`/livez did not answer for ${SILENT_MS / 1_000} s`);
      await sleep(LOOK_MS);
    }
    if (over) return new Promise(() => {});
    throw new Error(`the agent has ended; its last words:\n${await lastWords()}`);
  };
  const ended = watch();
  // Heeded where the attack is waited for.
  ended.catch(() => {});
  const finish = async ({ mostMiB = MOST_MIB, mayBeUnwell = false }: Partial<Limits>) => {
    const seen = await look();
    const peak = await peakMiB(pid);
    over = true;
    const reported = figures(seen, peak);
    const complaints = [
      ...(peak > mostMiB ? [`more than ${mostMiB} MiB`] : []),
      ...(seen.slowerThanControl > LIVEZ_MS ? [`/livez slower than ${LIVEZ_MS} ms`] : []),
      ...(seen.refused.length > 0 && !mayBeUnwell ? [`/livez said ${[...new Set(seen.refused)].join(", ")}`] : []),
    ];
    if (complaints.length === 0) return reported;
    const counted = Object.entries(reported).map(([what, value]) => `${what} ${value}`);
    throw new Error(`${complaints.join("; ")} (${counted.join(", ")})`);
  };
  return { ended, finish };
}

function figures({ asked, refused, slowest, slowerThanControl }: LivezReport, peak: number): Figures {
  return {
    "peak memory": `${Math.round(peak)} MiB`,
    "slowest livez": `${Math.round(slowest)} ms`,
    "over control": `${Math.round(slowerThanControl)} ms`,
    ...(refused.length > 0 && { unwell: `${refused.length} of ${asked}` }),
  };
}

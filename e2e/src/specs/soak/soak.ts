import { modeNamed } from "@fairlead/lab/modes";
import type { Cluster, ClusterShape } from "@fairlead/lab/provider/cluster";
import { messageOf, residentMiB } from "@fairlead/lab/support/processes";
import { startTraffic } from "../faults/traffic.ts";
import { onlyIn } from "../needs.ts";
import type { Scene } from "../scene.ts";
import type { Spec } from "../spec.ts";
import { openTool, type Tool } from "../tool-on.ts";
import { expectAsPlanned, expectDamageFound } from "./compare.ts";
import { type Drawn, drawSteps, type SoakScope } from "./draw.ts";
import { hardshipsOf } from "./hardships.ts";
import { entryText, failuresOf, isDamage, type SoakEntry, soakFigures, soakTable, stepText } from "./log.ts";
import { firstModel, type SoakModel } from "./model.ts";
import { perform, switchMode } from "./perform.ts";
import { expectServed, openSoakStage, type SoakStage } from "./stage.ts";

/** What the command line says of a soak. */
export interface SoakSettings {
  /** How long, in hours; a step that has begun comes to its end. */
  readonly hours: number;
  /** Of the steps; the same ones for the same seed, up to the time. */
  readonly seed: number;
}

const HOUR_MS = 3_600_000;
/** A step that takes longer has failed. */
const LONGEST_STEP_MS = 600_000;
/** A SYN that was lost is sent again after one second, and then after two. */
const AGAIN_MS = 3_000;
/** Between them agents are switched; the rest is for other kernels, or reaches endpoints from elsewhere. */
const SWITCHABLE = ["iptables", "nftables"];

/** Random steps, one after the other, with requests all the while. */
export function soak({ hours, seed }: SoakSettings): Spec {
  return {
    name: `random steps for ${hours} h (--seed ${seed}): no request fails, the rules are those of a fresh start`,
    suite: "soak",
    eachFamily: false,
    alone: true,
    unfit,
    run: async (scene) => {
      const stage = await openSoakStage(scene);
      const tool = await openTool(scene);
      const { mode } = scene.cluster;
      scene.later(() => switchMode(stage, mode));
      await expectDamageFound(scene, mode, tool);
      await expectAsPlanned(scene, mode, tool);
      const deadline = performance.now() + hours * HOUR_MS;
      const entries: SoakEntry[] = [];
      let before = firstModel(mode);
      for (const drawn of drawSteps(seed, scopeOf(scene.cluster))) {
        if (performance.now() > deadline) break;
        const entry = await take(stage, drawn, before, tool).catch((error: unknown) => {
          throw new Error(`step ${entries.length + 1}, ${stepText(drawn.step)}: ${messageOf(error)}`, { cause: error });
        });
        entries.push(entry);
        console.log(`  ${String(entries.length).padStart(5)}  ${entryText(entry)}`);
        before = drawn.model;
      }
      console.log(["", ...soakTable(entries), ""].join("\n"));
      return judged(entries);
    },
  };
}

function unfit(shape: ClusterShape): string | undefined {
  if (shape.provider !== "netns") return "needs agents that are processes of the test ground";
  return onlyIn(SWITCHABLE, "breaks by hand what iptables and nftables mode make, and switches between them")(shape);
}

function scopeOf(cluster: Cluster): SoakScope {
  const others = SWITCHABLE.filter((mode) => mode !== cluster.mode);
  return { modes: [cluster.mode, ...others], hardships: hardshipsOf(cluster) };
}

/** One step under load, until all is as the model says. */
async function take(stage: SoakStage, { step, model }: Drawn, before: SoakModel, tool: Tool): Promise<SoakEntry> {
  const { scene, ways } = stage;
  const started = performance.now();
  // Ended below, whatever happens: a soak has too many steps to leave something behind for each.
  const traffic = startTraffic(ways, () => {}, LONGEST_STEP_MS);
  try {
    await perform(stage, step, before);
    await expectServed(stage, model);
    await expectAsPlanned(scene, model.mode, tool);
  } finally {
    await traffic.stop();
  }
  const seen = await traffic.stop();
  if (seen.endedEarly) throw new Error(`wanted it done within ${LONGEST_STEP_MS} ms`);
  const entry = { step, seen, ms: performance.now() - started, memoryMiB: await memoryOf(scene) };
  const most = modeNamed(model.mode).repairMs + AGAIN_MS;
  if (isDamage(entry) && seen.longestGapMs > most) {
    throw new Error(`wanted a gap of ${most} ms at most; it was ${Math.round(seen.longestGapMs)} ms`);
  }
  return entry;
}

async function memoryOf({ cluster }: Scene): Promise<number> {
  const pids = cluster.nodes.flatMap(({ agent }) => agent.pid?.() ?? []);
  return (await Promise.all(pids.map(residentMiB))).reduce((sum, one) => sum + one, 0);
}

/** @throws Error that names the first of the requests that failed */
function judged(entries: readonly SoakEntry[]) {
  const failures = failuresOf(entries.filter((entry) => !isDamage(entry)));
  if (failures.length === 0) return soakFigures(entries);
  const named = [...new Set(failures)].slice(0, 20).join("\n");
  throw new Error(`wanted no failed request; of ${entries.length} steps came ${failures.length}:\n${named}`);
}

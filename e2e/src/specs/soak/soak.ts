import { modeNamed } from "@fairlead/lab/modes";
import type { Cluster, ClusterShape } from "@fairlead/lab/provider/cluster";
import { messageOf, residentMiB } from "@fairlead/lab/support/processes";
import { startTraffic, type TrafficSeen } from "../faults/stage.ts";
import { openTool, type Tool } from "../operator.ts";
import { type Figures, onlyIn, type Scene, type Spec } from "../spec.ts";
import { expectAsPlanned, expectDamageFound } from "./compare.ts";
import { type Drawn, drawSteps, firstModel, type SoakModel, type SoakScope, type SoakStep } from "./model.ts";
import { expectServed, hardshipsOf, openSoakStage, perform, type SoakStage, switchMode } from "./stage.ts";

/** What the command line says of a soak. */
export interface SoakSettings {
  /** How long, in hours; a step that has begun comes to its end. */
  readonly hours: number;
  /** Of the steps; the same ones for the same seed, up to the time. */
  readonly seed: number;
}

const HOUR_MS = 3_600_000;

/** What came of one step. */
interface SoakEntry {
  readonly step: SoakStep;
  readonly seen: TrafficSeen;
  /** From the step to rules that are as planned, in milliseconds. */
  readonly ms: number;
  /** Of the agents after it, on all nodes together, resident. */
  readonly memoryMiB: number;
}

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

/** A step that takes longer has failed. */
const LONGEST_STEP_MS = 600_000;
/** A SYN that was lost is sent again after one second, and then after two. */
const AGAIN_MS = 3_000;
/** Between them agents are switched; the rest is for other kernels, or reaches endpoints from elsewhere. */
const SWITCHABLE = ["iptables", "nftables"];

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

/** A step as one line of text. */
function stepText({ kind, ...rest }: SoakStep): string {
  const details = Object.values(rest).map((value) =>
    typeof value === "object" ? Object.values(value).join(" ") : value,
  );
  return [kind, ...details].join(" ");
}

function entryText({ step, seen, ms, memoryMiB }: SoakEntry): string {
  const requests = `${seen.requests} requests, ${seen.failures.length} failed, gap ${Math.round(seen.longestGapMs)} ms`;
  return `${stepText(step)}: ${requests}, ${(ms / 1_000).toFixed(1)} s, agents ${Math.round(memoryMiB)} MiB`;
}

/** Steps of a kind, a row each: how often, requests meanwhile, failed ones, the longest gap. */
function soakTable(entries: readonly SoakEntry[]): readonly string[] {
  const kinds = [...Map.groupBy(entries, ({ step }) => step.kind)].sort(([a], [b]) => a.localeCompare(b));
  const row = (cells: readonly [string, ...(string | number)[]]) =>
    cells.map((cell, at) => (at === 0 ? String(cell).padEnd(28) : String(cell).padStart(10))).join("");
  return [
    row(["step", "times", "requests", "failed", "gap, ms"]),
    ...kinds.map(([kind, of]) => row([kind, of.length, requestsOf(of), failuresOf(of).length, longestGapOf(of)])),
  ];
}

/** Requests may fail while rules are gone that another program has removed. */
function isDamage({ step }: SoakEntry): boolean {
  return step.kind === "damaged by hand";
}

function soakFigures(entries: readonly SoakEntry[]): Figures {
  const { true: damaged = [], false: calm = [] } = Object.groupBy(entries, (entry) => `${isDamage(entry)}` as const);
  const quarter = Math.max(1, Math.floor(entries.length / 4));
  const memory = entries.map(({ memoryMiB }) => memoryMiB);
  return {
    requests: String(requestsOf(entries)),
    failed: String(failuresOf(calm).length),
    "longest gap": `${longestGapOf(calm)} ms`,
    steps: String(entries.length),
    "failed while damaged": String(failuresOf(damaged).length),
    "longest gap while damaged": `${longestGapOf(damaged)} ms`,
    "agents' memory in the first quarter": `${meanOf(memory.slice(0, quarter))} MiB`,
    "in the last": `${meanOf(memory.slice(-quarter))} MiB`,
    "at most": `${Math.round(Math.max(...memory))} MiB`,
  };
}

function requestsOf(entries: readonly SoakEntry[]): number {
  return entries.reduce((sum, { seen }) => sum + seen.requests, 0);
}

function failuresOf(entries: readonly SoakEntry[]): readonly string[] {
  return entries.flatMap(({ step, seen }) => seen.failures.map((failure) => `${stepText(step)}: ${failure}`));
}

function longestGapOf(entries: readonly SoakEntry[]): number {
  return Math.round(Math.max(0, ...entries.map(({ seen }) => seen.longestGapMs)));
}

function meanOf(values: readonly number[]): number {
  return Math.round(values.reduce((sum, value) => sum + value, 0) / values.length);
}

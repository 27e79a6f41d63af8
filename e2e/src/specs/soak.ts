/** The cluster that a soak changes, and how its steps are carried out. */

import { setTimeout as sleep } from "node:timers/promises";
import type { IPFamily } from "@fairlead/core";
import { NEIGHBOR } from "@fairlead/lab/faults";
import { modeNamed } from "@fairlead/lab/modes";
import type { Cluster, ClusterNode, ClusterShape, Pod } from "@fairlead/lab/provider/cluster";
import { messageOf, residentMiB } from "@fairlead/lab/support/processes";
import { expectAnswers, expectRefused } from "./expect.ts";
import { cutConnections } from "./faults/api-server.ts";
import { each, openStage, startTraffic, type TrafficFlow, type TrafficSeen } from "./faults/stage.ts";
import { openTool, type Tool } from "./operator.ts";
import {
  type Damage,
  type Drawn,
  drawSteps,
  expectAsPlanned,
  expectDamageFound,
  expectSameRules,
  firstModel,
  type Hardship,
  readRules,
  type SoakModel,
  type SoakPod,
  type SoakScope,
  type SoakStep,
  servingPods,
} from "./soak-model.ts";
import { able, type Figures, onlyIn, type Scene, type ServiceHandle, type Spec } from "./spec.ts";

export interface SoakSettings {
  /** How long, in hours; a step that has begun comes to its end. */
  readonly hours: number;
  /** Of the steps; the same ones for the same seed, up to the time. */
  readonly seed: number;
}

const HOUR_MS = 3_600_000;

interface SoakEntry {
  readonly step: SoakStep;
  readonly seen: TrafficSeen;
  readonly ms: number;
  /** Of the agents after it, on all nodes together, resident. */
  readonly memoryMiB: number;
}

export function soak({ hours, seed }: SoakSettings): Spec {
  return {
    name: `random steps for ${hours} h (--seed ${seed}): no request fails, the rules are those of a fresh start`,
    suite: "soak",
    eachFamily: false,
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

function judged(entries: readonly SoakEntry[]) {
  const failures = failuresOf(entries.filter((entry) => !isDamage(entry)));
  if (failures.length === 0) return soakFigures(entries);
  const named = [...new Set(failures)].slice(0, 20).join("\n");
  throw new Error(`wanted no failed request; of ${entries.length} steps came ${failures.length}:\n${named}`);
}

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

/** What a soak works with: what the model only names. */
interface SoakStage {
  readonly scene: Scene;
  /** Requests to a service whose endpoints no step touches. */
  readonly ways: readonly TrafficFlow[];
  readonly caller: Pod;
  readonly services: Map<string, ServiceHandle>;
  readonly pods: Map<string, Pod>;
  nodeAt(place: number): ClusterNode;
}

async function openSoakStage(scene: Scene): Promise<SoakStage> {
  const { ways, caller } = await openStage(scene);
  return {
    scene,
    ways,
    caller,
    services: new Map(),
    pods: new Map(),
    nodeAt: (place) => known(scene.nodes[place], `node ${place}`),
  };
}

/** Controllers and agents ask a server that was away every half minute at last, and machines may be busy. */
const WITHIN_MS = 120_000;

/** Waits until every service is answered for by just the pods that the model says, and refused where there are none. */
async function expectServed({ services, pods, caller }: SoakStage, model: SoakModel): Promise<void> {
  for (const name of model.services) {
    const { clusterIP } = known(services.get(name), name);
    const target = { to: clusterIP, port: 80, withinMs: WITHIN_MS };
    const by = servingPods(model, name).map((pod) => known(pods.get(pod), pod));
    await (by.length === 0 ? expectRefused(caller, target) : expectAnswers(caller, target, { by }));
  }
}

async function perform(stage: SoakStage, step: SoakStep, before: SoakModel): Promise<void> {
  switch (step.kind) {
    case "service added":
      return addService(stage, step.service);
    case "service removed":
      await known(stage.services.get(step.service), step.service).remove();
      return void stage.services.delete(step.service);
    case "pod added":
      return addPod(stage, step.pod);
    case "pod removed":
      await known(stage.pods.get(step.pod), step.pod).remove();
      return void stage.pods.delete(step.pod);
    case "readiness changed":
      return known(stage.pods.get(step.pod), step.pod).setReady(step.ready);
    case "node address added":
      return changeAddress(stage, stage.nodeAt(step.node), "add");
    case "node address removed":
      return changeAddress(stage, stage.nodeAt(step.node), "del");
    case "neighbor writes":
      return sh(stage.nodeAt(step.node), NEIGHBOR.writes);
    case "neighbor removes":
      return sh(stage.nodeAt(step.node), NEIGHBOR.removes);
    case "damaged by hand":
      return damage(stage, stage.nodeAt(step.node), step.damage, before.mode);
    case "mode switched":
      return switchMode(stage, step.mode);
    default:
      return endure(step.kind, stage.scene, before.mode);
  }
}

async function switchMode({ scene }: Pick<SoakStage, "scene">, mode: string): Promise<void> {
  await each(scene, async ({ name, agent }) => {
    if (agent.swap === undefined) throw new Error(`the agent on ${name} cannot be started in another mode`);
    await agent.swap({ mode });
  });
}

type Act = (scene: Scene, mode: string) => Promise<void>;

const STOPPED_MS = 5_000;
const AWAY_MS = 4_000;
const GONE_MS = 3_000;

const acts: Readonly<Record<Hardship, Act>> = {
  // What it reads back and writes anew is what it had come to change by change.
  "agents restarted": async (scene, mode) => {
    const { canonical } = modeNamed(mode).rules;
    const before = await readRules(scene, mode);
    await each(scene, ({ agent }) => agent.restart());
    if (canonical) expectSameRules(before, await readRules(scene, mode));
  },
  "agents killed": (scene) =>
    each(scene, async ({ agent }) => {
      await agent.kill();
      await agent.restart();
    }),
  "agents stopped for a while": async (scene) => {
    await each(scene, ({ agent }) => agent.signal("SIGSTOP"));
    await sleep(STOPPED_MS);
    await each(scene, ({ agent }) => agent.signal("SIGCONT"));
  },
  "API server away for a while": async ({ cluster: { apiServer } }) => {
    await apiServer.stop();
    await sleep(AWAY_MS);
    await apiServer.start();
  },
  "watches cut": async (scene) => void (await cutConnections(scene)),
  "watches ended with 410": async ({ cluster: { apiServer } }) => void (await able(apiServer.expireWatches)(GONE_MS)),
};

/** Those that the cluster can be put through. */
function hardshipsOf({ abilities = [] }: Pick<Cluster, "abilities">): readonly Hardship[] {
  const all = Object.keys(acts) as readonly Hardship[];
  return abilities.includes("expire-watches") ? all : all.filter((one) => one !== "watches ended with 410");
}

function known<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`the model has ${what}, the cluster has not`);
  return value;
}

/** An address that only `ip address` knows of. */
const FURTHER_ADDRESS: Readonly<Record<IPFamily, string>> = { IPv4: "192.0.2.77/32", IPv6: "2001:db8::77/128" };

async function addService({ scene, services }: SoakStage, name: string): Promise<void> {
  services.set(name, await scene.service(name, { selector: { app: name }, ports: [{ port: 80 }] }));
}

async function addPod({ scene, pods, nodeAt }: SoakStage, { name, app, node, ready }: SoakPod): Promise<void> {
  pods.set(name, await scene.pod({ node: nodeAt(node), app, ready }));
}

async function changeAddress({ scene }: SoakStage, node: ClusterNode, how: "add" | "del"): Promise<void> {
  await node.run(["ip", "address", how, FURTHER_ADDRESS[scene.family], "dev", "lo"]);
}

async function sh(node: ClusterNode, script: string): Promise<void> {
  await node.run(["sh", "-ec", script]);
}

async function damage({ scene }: SoakStage, node: ClusterNode, what: Damage, mode: string): Promise<void> {
  const { byHand } = modeNamed(mode);
  await node.run(known(byHand, `what to break in ${mode} mode`)[what](scene.family));
}

function endure(hardship: Hardship, scene: Scene, mode: string): Promise<void> {
  return acts[hardship](scene, mode);
}

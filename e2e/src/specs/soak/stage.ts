/** The cluster that a soak changes, and how its steps are carried out. */

import { setTimeout as sleep } from "node:timers/promises";
import type { IPFamily } from "@fairlead/core";
import { NEIGHBOR } from "@fairlead/lab/faults";
import { modeNamed } from "@fairlead/lab/modes";
import type { Cluster, ClusterNode, Pod } from "@fairlead/lab/provider/cluster";
import { expectAnswers, expectRefused } from "../expect.ts";
import { cutConnections } from "../faults/api-server.ts";
import { each, openStage, type TrafficFlow } from "../faults/stage.ts";
import { able, type Scene, type ServiceHandle } from "../spec.ts";
import { expectSameRules, readRules } from "./compare.ts";
import { type Damage, type Hardship, type SoakModel, type SoakPod, type SoakStep, servingPods } from "./model.ts";

/** What a soak works with: what the model only names. */
export interface SoakStage {
  readonly scene: Scene;
  /** Requests to a service whose endpoints no step touches. */
  readonly ways: readonly TrafficFlow[];
  readonly caller: Pod;
  readonly services: Map<string, ServiceHandle>;
  readonly pods: Map<string, Pod>;
  nodeAt(place: number): ClusterNode;
}

export async function openSoakStage(scene: Scene): Promise<SoakStage> {
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
export async function expectServed({ services, pods, caller }: SoakStage, model: SoakModel): Promise<void> {
  for (const name of model.services) {
    const { clusterIP } = known(services.get(name), name);
    const target = { to: clusterIP, port: 80, withinMs: WITHIN_MS };
    const by = servingPods(model, name).map((pod) => known(pods.get(pod), pod));
    await (by.length === 0 ? expectRefused(caller, target) : expectAnswers(caller, target, { by }));
  }
}

/**
 * Does to the cluster what the step says.
 *
 * @param before as the cluster is now
 */
export async function perform(stage: SoakStage, step: SoakStep, before: SoakModel): Promise<void> {
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

export async function switchMode({ scene }: Pick<SoakStage, "scene">, mode: string): Promise<void> {
  await each(scene, async ({ name, agent }) => {
    if (agent.swap === undefined) throw new Error(`the agent on ${name} cannot be started in another mode`);
    await agent.swap({ mode });
  });
}

/** @param mode in which the agents run */
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
export function hardshipsOf({ abilities = [] }: Pick<Cluster, "abilities">): readonly Hardship[] {
  const all = Object.keys(acts) as readonly Hardship[];
  return abilities.includes("expire-watches") ? all : all.filter((one) => one !== "watches ended with 410");
}

/** @throws Error that names what a step should have found */
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

import type { ClusterNode, Pod } from "@fairlead/lab/provider/cluster";
import { expectAnswers, expectRefused } from "../expect.ts";
import { openStage } from "../faults/stage.ts";
import type { TrafficFlow } from "../faults/traffic.ts";
import type { Scene } from "../scene.ts";
import type { ServiceHandle } from "../service.ts";
import { type SoakModel, servingPods } from "./model.ts";

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

/** Controllers and agents ask a server that was away every half minute at last, and machines may be busy. */
const WITHIN_MS = 120_000;

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

/** @throws Error that names what a step should have found */
export function known<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`the model has ${what}, the cluster has not`);
  return value;
}

/** Waits until every service is answered for by just the pods that the model says, and refused where there are none. */
export async function expectServed({ services, pods, caller }: SoakStage, model: SoakModel): Promise<void> {
  for (const name of model.services) {
    const { clusterIP } = known(services.get(name), name);
    const target = { to: clusterIP, port: 80, withinMs: WITHIN_MS };
    const by = servingPods(model, name).map((pod) => known(pods.get(pod), pod));
    await (by.length === 0 ? expectRefused(caller, target) : expectAnswers(caller, target, { by }));
  }
}

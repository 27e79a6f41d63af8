import type { IPFamily } from "@fairlead/core";
import { NEIGHBOR } from "@fairlead/lab/faults";
import { modeNamed } from "@fairlead/lab/modes";
import type { ClusterNode } from "@fairlead/lab/provider/cluster";
import { each } from "../faults/stage.ts";
import { endure } from "./hardships.ts";
import type { Damage, SoakModel, SoakPod, SoakStep } from "./model.ts";
import { known, type SoakStage } from "./stage.ts";

/** An address that only `ip address` knows of. */
const FURTHER_ADDRESS: Readonly<Record<IPFamily, string>> = { IPv4: "192.0.2.77/32", IPv6: "2001:db8::77/128" };

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

export async function switchMode({ scene }: Pick<SoakStage, "scene">, mode: string): Promise<void> {
  await each(scene, async ({ name, agent }) => {
    if (agent.swap === undefined) throw new Error(`the agent on ${name} cannot be started in another mode`);
    await agent.swap({ mode });
  });
}

import { setTimeout as sleep } from "node:timers/promises";
import { modeNamed } from "@fairlead/lab/modes";
import type { Cluster } from "@fairlead/lab/provider/cluster";
import { cutConnections } from "../faults/api-server.ts";
import { each } from "../faults/stage.ts";
import { able } from "../needs.ts";
import type { Scene } from "../scene.ts";
import { expectSameRules, readRules } from "./compare.ts";
import type { Hardship } from "./model.ts";

const STOPPED_MS = 5_000;
const AWAY_MS = 4_000;
const GONE_MS = 3_000;

/** @param mode in which the agents run */
type Act = (scene: Scene, mode: string) => Promise<void>;

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

export function endure(hardship: Hardship, scene: Scene, mode: string): Promise<void> {
  return acts[hardship](scene, mode);
}

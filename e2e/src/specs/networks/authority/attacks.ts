import type { ClusterShape } from "@fairlead/lab/provider/cluster";
import { each, restoreAgents } from "../../every-node.ts";
import { needsExcluded } from "../../multi-cni/networks.ts";
import { needs, onlyIPv4 } from "../../needs.ts";
import type { Scene } from "../../scene.ts";
import type { Spec } from "../../spec.ts";
import type { NetworkAttack } from "./attack.ts";
import { openBystanders } from "./bystanders.ts";
import { guarded, learnByFile, unguarded } from "./configuration.ts";
import { guardedRows } from "./guarded-rows.ts";
import { openRows } from "./open-rows.ts";
import { untilOwned } from "./owners.ts";
import { runAttack } from "./run-attack.ts";

const COMMON = { suite: "networks", about: ["endpoint-filter", "networks"], eachFamily: false, alone: true } as const;

function unfit(shape: ClusterShape): string | undefined {
  const able = needs("learn")(shape) ?? needs("pod-script")(shape);
  return able ?? needsExcluded(shape) ?? onlyIPv4("its CIDRs are IPv4")(shape);
}

/** Each row of a table after the other, under one load. */
function attacksOn(how: string, multiCNI: (scene: Scene) => unknown, rows: readonly NetworkAttack[]): Spec {
  return {
    ...COMMON,
    name: `attacks on networks, ${how}: no service changes hands, DNS and the API answer`,
    unfit,
    run: async (scene) => {
      const { at, load } = await openBystanders(scene);
      await learnByFile(scene, multiCNI(scene));
      await untilOwned(at);
      const finish = await load();
      for (const row of rows) await runAttack(at, row);
      const counts = Object.entries(Object.groupBy(rows, ({ outcome }) => outcome));
      const outcomes = counts.map(([outcome, found = []]) => [outcome, String(found.length)] as const);
      return { ...(await finish()), ...Object.fromEntries(outcomes) };
    },
  };
}

/** The operator's own mistake: a list without any source. */
const writtenList: Spec = {
  ...COMMON,
  name: "attacks on networks, a written list over the API server: its Service stays ours, with a warning",
  unfit,
  run: async (scene) => {
    const { at, load } = await openBystanders(scene);
    const finish = await load();
    const cidr = at.apiServer.replace(/\d+$/, "0/24");
    restoreAgents(scene);
    const flags = [`--exclude-cluster-cidr=${cidr}`];
    await each(scene, ({ agent }) => agent.restart({ memory: scene.namespace, flags }));
    await untilOwned(at);
    await scene.until("a warning on every node", async () => {
      const logs = await Promise.all(scene.cluster.nodes.map(({ agent }) => agent.log()));
      const wanted = `the API server is in ${cidr}, which is excluded`;
      return logs.every((log) => log.includes(wanted)) ? undefined : "none";
    });
    return finish();
  },
};

export const attacksOnNetworks: readonly Spec[] = [
  attacksOn("where other networks' sources have within", guarded, guardedRows),
  attacksOn("without within", unguarded, openRows),
  writtenList,
];

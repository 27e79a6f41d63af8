import { setTimeout as sleep } from "node:timers/promises";
import { IP_FAMILIES } from "@fairlead/base";
import { type NftTarget, nftFaults, nftTable, noteOthersRules } from "@fairlead/lab/faults";
import type { ClusterNode } from "@fairlead/lab/provider/cluster";
import { expectAnswers } from "../expect.ts";
import { onlyIn } from "../needs.ts";
import type { Spec } from "../spec.ts";
import { fullSyncs } from "./full-syncs.ts";
import { COMMON, each, openStage, withoutLoss } from "./stage.ts";
import { figures, startTraffic } from "./traffic.ts";

const needsNftables = onlyIn(["nftables"], "breaks what nftables mode makes");

/**
 * The kernel notifies the agent, which writes at once. As long as twenty looks of the observer may take is for a busy
 * machine, on which the agent's processes are as slow as the observer's.
 */
const REPAIR_MS = 1_000;
const LOOKS = 20;

async function listed({ run }: ClusterNode, table: string): Promise<string> {
  const { stdout } = await run(["nft", "list", "table", ...table.split(" ")]);
  return stdout;
}

function broken(name: string, deed: (target: NftTarget) => string): Spec {
  return {
    ...COMMON,
    name: `${name}: whole again at once`,
    unfit: needsNftables,
    run: async (scene) => {
      const { ways, caller, by, atService } = await openStage(scene);
      const table = nftTable(scene.family);
      const key = `${atService.to} . tcp . ${atService.port}`;
      const before = new Map<ClusterNode, string>();
      await each(scene, async (node) => {
        before.set(node, await listed(node, table));
        for (const family of IP_FAMILIES) scene.later(await noteOthersRules(node, family));
      });
      const traffic = startTraffic(ways, scene.later);
      const took: number[] = [];
      let look = 0;
      await each(scene, async (node) => {
        await node.run(["nft", deed({ table, key })]);
        const began = performance.now();
        await scene.until(`${node.name} as before`, async () => {
          const asked = performance.now();
          const now = await listed(node, table).catch(() => "no table");
          look = Math.max(look, performance.now() - asked);
          return now === before.get(node) ? undefined : now;
        });
        took.push(Math.round(performance.now() - began));
      });
      const slowest = Math.max(...took);
      const most = Math.round(REPAIR_MS + LOOKS * look);
      if (slowest > most) throw new Error(`wanted all whole within ${most} ms; it took ${slowest} ms`);
      await expectAnswers(caller, atService, { by });
      return { ...figures(await traffic.stop()), "whole after": `${slowest} ms` };
    },
  };
}

/** A table of its own, made and deleted again and again by one long-lived nft, a hundred transactions a second. */
const THEIRS = `for i in $(seq 500); do
  echo "add table ip theirs$((i % 10)); add set ip theirs$((i % 10)) s { type ipv4_addr; }"
  echo "delete table ip theirs$((i % 10))"
  sleep 0.01
done | nft -i`;

const busyNeighbor = withoutLoss(
  "another program writes tables of its own, a hundred times a second: nothing is written again",
  async (scene) => {
    const before = await Promise.all(scene.nodes.map(fullSyncs));
    await each(scene, async (node) => void (await node.run(["sh", "-c", THEIRS])));
    await sleep(2_000);
    const after = await Promise.all(scene.nodes.map(fullSyncs));
    if (after.join() !== before.join()) {
      throw new Error(`wanted no full sync meanwhile; there were ${before.join()} before and ${after.join()} after`);
    }
    return { "others' transactions": "1000 on each node" };
  },
  { unfit: needsNftables },
);

export const nftByHand: readonly Spec[] = [
  ...Object.entries(nftFaults).map(([name, deed]) => broken(name, deed)),
  busyNeighbor,
];

/** Rules that are damaged by hand. */

import { setTimeout as sleep } from "node:timers/promises";
import { IP_FAMILIES } from "@fairlead/base";
import { ipvsFaults, type NftTarget, nftFaults, nftTable, noteOthersRules } from "@fairlead/lab/faults";
import type { ClusterNode } from "@fairlead/lab/provider/cluster";
import { IPVS_SYNC_PERIOD_MS } from "@fairlead/lab/provider/netns/agent";
import { expectAnswers, expectUntouched } from "../expect.ts";
import { excludedNetwork, expectForeign, expectNoTrace, needsExcluded } from "../multi-cni/untouched.ts";
import { onlyIn, type Spec } from "../spec.ts";
import {
  COMMON,
  each,
  figures,
  fullSyncs,
  longestTraffic,
  openStage,
  PORTS,
  startTraffic,
  withoutLoss,
} from "./stage.ts";

const IN_COMMON = { suite: "faults", eachFamily: false, alone: true } as const;

const needsIpvs = onlyIn(["ipvs"], "breaks what ipvs mode makes");

/** What a node has of a service, and where that is to be seen. */
const LISTINGS = {
  servers: ["ipvsadm", "--save", "-n"],
  sets: ["ipset", "save"],
  addresses: ["ip", "address", "show", "dev", "kube-ipvs0"],
  rules: ["iptables-save", "-t", "nat"],
} as const;

type Part = keyof typeof LISTINGS;

interface Broken {
  /** That it succeeds is the proof: the agent may be quicker than who looks. */
  readonly fault: "serversCleared" | "setsDestroyed" | "deviceDeleted";
  /** What it takes away. */
  readonly takes: readonly Part[];
}

/** What an operator does by hand on every node. */
const FAULTS: Readonly<Record<string, Broken>> = {
  "ipvsadm --clear": { fault: "serversCleared", takes: ["servers"] },
  "ipsets destroyed, with the rules that ask them": { fault: "setsDestroyed", takes: ["sets", "rules"] },
  "kube-ipvs0 deleted": { fault: "deviceDeleted", takes: ["addresses"] },
};

/** Whose address stands on kube-ipvs0 is taken from everybody else on that node. */
const hijacked: Spec = {
  ...IN_COMMON,
  name: "another network's service put on kube-ipvs0: it ends here, until the address is taken off again",
  unfit: (shape) => needsIpvs(shape) ?? needsExcluded(shape),
  run: async (scene) => {
    const [node] = scene.nodes;
    const network = excludedNetwork(scene.cluster).name;
    const { caller } = await openStage(scene);
    await scene.pod({ node, app: "theirs", network });
    const { name, clusterIP } = await scene.service("theirs", { selector: { app: "theirs" }, ports: PORTS });
    await expectForeign(scene, name);
    await expectNoTrace(scene, clusterIP);
    await expectUntouched(caller, { to: clusterIP, port: 80 });
    const local = async () => (await node.run(["ip", "route", "get", clusterIP])).stdout.startsWith("local ");
    if (await local()) throw new Error(`${clusterIP} is the node's own before anybody put it there`);
    // An agent at work takes it off before anybody could look.
    await node.agent.signal("SIGSTOP");
    scene.later(() => node.agent.signal("SIGCONT"));
    await node.run(["sh", "-c", ipvsFaults.addressAdded({ other: clusterIP })]);
    if (!(await local())) throw new Error(`${clusterIP} is not the node's own`);
    await node.agent.signal("SIGCONT");
    await scene.until(`${clusterIP} to be nobody's on ${node.name}`, async () =>
      (await local()) ? "the node's own" : undefined,
    );
    await expectNoTrace(scene, clusterIP);
    await expectUntouched(caller, { to: clusterIP, port: 80 });
  },
};

export const byHand: readonly Spec[] = [
  ...Object.entries(FAULTS).map(([name, fault]) => broken(name, fault)),
  hijacked,
];

const needsNftables = onlyIn(["nftables"], "breaks what nftables mode makes");

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
  ...Object.entries(nftFaults).map(([name, deed]) => brokenTables(name, deed)),
  busyNeighbor,
];

const ALL: readonly Part[] = ["servers", "sets", "addresses", "rules"];

/** One listing after the other: each is a process, which takes time from the agent in a guest. */
async function missingOn(
  nodes: readonly ClusterNode[],
  address: string,
  parts: readonly Part[],
): Promise<string | undefined> {
  for (const { name, run } of nodes) {
    for (const part of parts) {
      const text = await run(LISTINGS[part]).then(
        ({ stdout }) => stdout,
        () => "",
      );
      if (!text.includes(part === "rules" ? "--match-set KUBE-CLUSTER-IP" : address)) return `${name} without ${part}`;
    }
  }
  return undefined;
}

function broken(name: string, { fault, takes }: Broken): Spec {
  return {
    ...IN_COMMON,
    name: `${name}: whole again within a sync period`,
    unfit: needsIpvs,
    run: async (scene) => {
      const { ways, caller, by, atService } = await openStage(scene);
      const missing = (parts: readonly Part[]) => missingOn(scene.nodes, atService.to, parts);
      await scene.until(`${atService.to} everywhere`, () => missing(ALL));
      const traffic = startTraffic(ways, scene.later, longestTraffic(scene));
      await each(scene, async (node) => void (await node.run(["sh", "-c", ipvsFaults[fault]()])));
      const started = performance.now();
      await scene.until(`${atService.to} everywhere again`, () => missing(takes));
      const ms = Math.round(performance.now() - started);
      if (ms > IPVS_SYNC_PERIOD_MS)
        throw new Error(`wanted all whole within ${IPVS_SYNC_PERIOD_MS} ms; it took ${ms} ms`);
      const rest = await missing(ALL);
      if (rest !== undefined) throw new Error(`wanted all whole; came ${rest}`);
      await expectAnswers(caller, atService, { by });
      return { ...figures(await traffic.stop()), "whole after": `${ms} ms` };
    },
  };
}

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

function brokenTables(name: string, deed: (target: NftTarget) => string): Spec {
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

import { ipvsFaults } from "@fairlead/lab/faults";
import type { ClusterNode } from "@fairlead/lab/provider/cluster";
import { IPVS_SYNC_PERIOD_MS } from "@fairlead/lab/provider/netns/agent";
import { expectAnswers, expectUntouched } from "../expect.ts";
import { excludedNetwork, needsExcluded } from "../multi-cni/networks.ts";
import { expectForeign, expectNoTrace } from "../multi-cni/untouched.ts";
import { onlyIn } from "../needs.ts";
import type { Spec } from "../spec.ts";
import { each, longestTraffic, openStage, PORTS } from "./stage.ts";
import { figures, startTraffic } from "./traffic.ts";

const COMMON = { suite: "faults", eachFamily: false, alone: true } as const;

const needsIpvs = onlyIn(["ipvs"], "breaks what ipvs mode makes");

/** What a node has of a service, and where that is to be seen. */
const LISTINGS = {
  servers: ["ipvsadm", "--save", "-n"],
  sets: ["ipset", "save"],
  addresses: ["ip", "address", "show", "dev", "kube-ipvs0"],
  rules: ["iptables-save", "-t", "nat"],
} as const;

type Part = keyof typeof LISTINGS;

const ALL: readonly Part[] = ["servers", "sets", "addresses", "rules"];

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
    ...COMMON,
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

/** Whose address stands on kube-ipvs0 is taken from everybody else on that node. */
const hijacked: Spec = {
  ...COMMON,
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

import { setTimeout as sleep } from "node:timers/promises";
import type { Client, ClusterNode } from "@fairlead/lab/provider/cluster";
import { configFlag } from "../configured.ts";
import { expectAnswers, expectLost } from "../expect.ts";
import { startTraffic, withoutFailure } from "../faults/traffic.ts";
import { able, needs, onlyIn } from "../needs.ts";
import type { Scene } from "../scene.ts";
import type { Figures, Spec } from "../spec.ts";
import { expectLarge, expectTold } from "./path-mtu.ts";
import { expectAll, onFirst, onSecond, openStage, type Stage } from "./stage.ts";

/** On every address of the node, in every mode. */
const EVERYWHERE = { nodePortAddresses: ["0.0.0.0/0", "::/0"] };

/** The clients of the second uplink lose nothing either while something happens that leaves it alone. */
async function underLoad(scene: Scene, stage: Stage, act: () => Promise<void>): Promise<Figures> {
  const traffic = startTraffic([onSecond(stage, scene)], scene.later, LONGEST_MS);
  await sleep(1_000);
  await act();
  await sleep(1_000);
  return withoutFailure(await traffic.stop());
}

const LONGEST_MS = 300_000;

async function leftovers({ run }: ClusterNode): Promise<string> {
  const argv = ["sh", "-c", "ip -4 rule; ip -6 rule; ip route show table all proto 175; nft list tables"] as const;
  const { stdout } = await run(argv);
  return stdout
    .split("\n")
    .filter((line) => /fwmark|fairlead_reply|proto 175/.test(line))
    .join(", ");
}

async function throughChanges(scene: Scene): Promise<Figures> {
  const stage = await openStage(scene);
  const { node, uplink, services } = stage;
  const { agent } = node;
  const again = () => expectAll(stage, onSecond(stage, scene));
  await expectAnswers(scene.cluster.outside, { to: services[0].loadBalancer, port: 80 }, { by: stage.by });
  await expectLost(uplink.client, { to: services[0].loadBalancer, port: 80 });
  const flags = [await configFlag(scene, node, { kubeProxy: EVERYWHERE, fairlead: { replyVia: "auto" } })];
  scene.later(() => agent.restart());
  await agent.restart({ flags });
  await expectAll(stage, [...onFirst(stage, scene), ...onSecond(stage, scene)]);
  const traffic = startTraffic([onFirst(stage, scene)], scene.later, LONGEST_MS);
  const second = await underLoad(scene, stage, async () => {
    await agent.restart({ flags });
    process.kill(able(agent.pid)(), "SIGUSR2");
    await again();
    await agent.kill();
    await agent.restart({ flags });
  });
  await uplink.down();
  await scene.until("one routing rule", async () => {
    const { stdout } = await node.run(["ip", "rule", "show"]);
    return stdout.split("fwmark").length === 2 ? undefined : stdout;
  });
  await uplink.up();
  await again();
  await uplink.replace();
  await again();
  await uplink.renumber();
  await again();
  const afterwards = await underLoad(scene, stage, again);
  await expectLarge(stage);
  await expectTold(stage, scene);
  const first = withoutFailure(await traffic.stop());
  await agent.restart();
  await scene.until("nothing left of it", async () => (await leftovers(node)) || undefined);
  return {
    "first uplink": textOf(first),
    "second, agent restarted and killed": textOf(second),
    "second, after it came back": textOf(afterwards),
  };
}

function textOf({ requests, failed }: Figures): string {
  return `${failed} of ${requests} failed`;
}

const unfit: ReturnType<typeof needs> = (shape) =>
  needs("second-uplink")(shape) ?? onlyIn(["iptables", "nftables"], "pnpm e2e --all 'ipvs qemu' has ipvs mode")(shape);

export const twoUplinks: Spec = {
  name: "replyVia: a node's second uplink goes, returns, is made anew and gets another address, and its agent is killed",
  suite: "faults",
  alone: true,
  unfit,
  run: throughChanges,
};

const { FAIRLEAD_KUBE_PROXY: kubeProxy = "" } = process.env;
const REQUESTS = 9;

/** How many requests to the load-balancer address are answered. */
async function answered({ services: [{ loadBalancer }] }: Stage, client: Client): Promise<string> {
  const probe = { protocol: "TCP", to: loadBalancer, port: 80, timeoutMs: 1_500 } as const;
  const results = await client.send({ ...probe, count: REQUESTS, parallel: REQUESTS });
  return `${results.filter(({ kind }) => kind === "answer").length} of ${REQUESTS}`;
}

/** Where kube-proxy serves, what comes by the second uplink is answered by the first. */
export const twoUplinksOfKubeProxy: Spec = {
  name: "two uplinks: what kube-proxy answers on the second, and Fairlead with replyVia",
  suite: "swap",
  alone: true,
  unfit: (shape) =>
    unfit(shape) ?? (kubeProxy === "" ? "needs kube-proxy's program in FAIRLEAD_KUBE_PROXY" : undefined),
  run: async (scene) => {
    const stage = await openStage(scene);
    const { cluster } = scene;
    const { agent } = stage.node;
    const flags = [await configFlag(scene, stage.node, { kubeProxy: EVERYWHERE, fairlead: { replyVia: "auto" } })];
    const seen: Record<string, string> = {};
    const look = async (proxy: string) => {
      await expectAnswers(cluster.outside, { to: stage.services[0].loadBalancer, port: 80 }, { by: stage.by });
      seen[`${proxy}, first uplink`] = await answered(stage, cluster.outside);
      seen[`${proxy}, second uplink`] = await answered(stage, stage.uplink.client);
    };
    scene.later(() => able(agent.swap)({ mode: cluster.mode }));
    await able(agent.swap)({ mode: cluster.mode, kubeProxy });
    await look("kube-proxy");
    await able(agent.swap)({ mode: cluster.mode });
    await agent.restart({ flags });
    await expectAll(stage, onSecond(stage, scene));
    await look("Fairlead");
    const all = `${REQUESTS} of ${REQUESTS}`;
    const wanted = { "kube-proxy, first uplink": all, "Fairlead, first uplink": all, "Fairlead, second uplink": all };
    for (const [what, count] of Object.entries(wanted))
      if (seen[what] !== count) throw new Error(`wanted ${count} at ${what}; came ${seen[what]}`);
    return seen;
  },
};

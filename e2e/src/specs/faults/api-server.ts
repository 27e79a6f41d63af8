import { setTimeout as sleep } from "node:timers/promises";
import { cutArgv } from "@fairlead/lab/faults";
import { PLAIN_TOOL } from "@fairlead/lab/support/machine";
import { able, needs, type Scene, type Spec } from "../spec.ts";
import { each, expectLate, withoutLoss } from "./stage.ts";

const ABOUT = ["agent", "watch"] as const;

/** Agents and controllers ask a server that is away less and less, at last every half minute. */
const BACK_MS = 300_000;

const away = withoutLoss(
  "the API server away for 30 s, and back with other objects",
  async (scene) => {
    const { apiServer } = scene.cluster;
    await apiServer.stop();
    await sleep(30_000);
    await apiServer.start();
    await expectLate(scene, { withinMs: BACK_MS });
  },
  {
    unfit: ({ provider }) => (provider === "kind" ? "the API server of kind is the kubelet's to stop" : undefined),
    about: ABOUT,
  },
);

/** Ends connections at the API server: the other end gets a reset. Gives how many. */
export async function cutConnections({ cluster, nodes, family }: Scene): Promise<number> {
  const answers = await Promise.all(
    nodes.map(({ addresses }) => cluster.apiServer.run(cutArgv("6443", addresses[family] ?? ""))),
  );
  return answers.flatMap(({ stdout }) => stdout.split("\n").filter(Boolean)).length;
}

/** Connections to the API server are reset, and new ones are for a moment. */
const cut = withoutLoss(
  "the watches cut every second, 15 times",
  async (scene) => {
    const tool = PLAIN_TOOL[scene.family];
    const rule = ["OUTPUT", "-p", "tcp", "--dport", "6443", "-j", "REJECT", "--reject-with", "tcp-reset"];
    let connections = 0;
    for (let round = 0; round < 15; round++) {
      await each(scene, async (node) => void (await node.run([tool, "-I", ...rule])));
      connections += await cutConnections(scene);
      await sleep(200);
      await each(scene, async (node) => void (await node.run([tool, "-D", ...rule])));
      await sleep(800);
    }
    if (connections < scene.nodes.length) throw new Error(`${connections} connections were cut: the kernel cannot`);
    await expectLate(scene, { withinMs: BACK_MS });
    return { "connections cut": String(connections) };
  },
  {
    unfit: ({ provider }) => (provider === "netns" ? undefined : "cuts connections where namespaces are"),
    about: ABOUT,
  },
);

const STORM_MS = 15_000;

const gone = withoutLoss(
  "a storm of 410: every watch ends with it for 15 s",
  async (scene) => {
    const expireWatches = able(scene.cluster.apiServer.expireWatches);
    const [watches] = await Promise.all([
      expireWatches(STORM_MS),
      sleep(STORM_MS / 3).then(() => expectLate(scene, { withinMs: BACK_MS })),
    ]);
    if (watches < 2 * scene.nodes.length) throw new Error(`no storm: ${watches} watches ended with 410`);
    return { "watches ended with 410": String(watches) };
  },
  { unfit: needs("expire-watches"), about: ABOUT },
);

const CHANGES = 1_000;

const rolling = withoutLoss(`${CHANGES} endpoint changes next to endpoints that stay`, async (scene) => {
  const [first, second] = scene.nodes;
  const moving = await Promise.all([first, second].map((node) => scene.pod({ node, app: "web" })));
  for (let change = 0; change < CHANGES / 2; change++) {
    await Promise.all(moving.map((pod) => pod.setReady(change % 2 === 1)));
  }
  await Promise.all(moving.map((pod) => pod.setReady(false)));
});

export const apiServer: readonly Spec[] = [away, cut, gone, rolling];

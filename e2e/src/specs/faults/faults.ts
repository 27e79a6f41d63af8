import { setTimeout as sleep } from "node:timers/promises";
import { expectAnswers } from "../expect.ts";
import type { Scene } from "../scene.ts";
import type { Spec } from "../spec.ts";
import { each, longestTraffic, openStage, ports } from "./stage.ts";
import { expectNoLoss, figures, startTraffic } from "./traffic.ts";

const common = { suite: "faults", eachFamily: false, alone: true } as const;

/** A fault during which no request may fail. */
function withoutLoss(name: string, fault: (scene: Scene) => Promise<void>): Spec {
  return {
    ...common,
    name,
    run: async (scene) => {
      const { ways, caller, by, atService } = await openStage(scene);
      const traffic = startTraffic(ways, scene.later, longestTraffic(scene));
      await sleep(1_000);
      await fault(scene);
      await sleep(1_000);
      const seen = await traffic.stop();
      expectNoLoss(seen);
      await expectAnswers(caller, atService, { by });
      return figures(seen);
    },
  };
}

const killed = withoutLoss("agents killed with -9 and started again", async (scene) => {
  for (let round = 0; round < 3; round++) {
    await each(scene, async ({ agent }) => {
      await agent.kill();
      await agent.restart();
    });
  }
});

const frozen = withoutLoss("agents stopped for 20 s (SIGSTOP)", async (scene) => {
  await each(scene, ({ agent }) => agent.signal("SIGSTOP"));
  await sleep(20_000);
  await each(scene, ({ agent }) => agent.signal("SIGCONT"));
});

/** Agents and controllers ask a server that is away less and less, at last every half minute. */
const BACK_MS = 70_000;

const apiAway: Spec = {
  ...withoutLoss("the API server away for 30 s, and back with other objects", async (scene) => {
    const { apiServer } = scene.cluster;
    await apiServer.stop();
    await sleep(30_000);
    await apiServer.start();
    const late = await scene.pod({ node: scene.nodes[0], app: "late" });
    const service = await scene.service("late", { selector: { app: "late" }, ports });
    for (const node of scene.nodes) {
      await expectAnswers(node, { to: service.clusterIP, port: 80, withinMs: BACK_MS }, { by: [late] });
    }
  }),
  unfit: ({ provider }) => (provider === "kind" ? "the API server of kind is the kubelet's to stop" : undefined),
};

/** Connections to the API server are reset, and new ones are for a moment. */
const cut = withoutLoss("the watches cut every second, 15 times", async (scene) => {
  const tool = scene.family === "IPv4" ? "iptables" : "ip6tables";
  const rule = ["OUTPUT", "-p", "tcp", "--dport", "6443", "-j", "REJECT", "--reject-with", "tcp-reset"];
  for (let round = 0; round < 15; round++) {
    await each(scene, async (node) => void (await node.run([tool, "-I", ...rule])));
    await sleep(200);
    await each(scene, async (node) => void (await node.run([tool, "-D", ...rule])));
    await sleep(800);
  }
});

const CHANGES = 1_000;

const rolling = withoutLoss(`${CHANGES} endpoint changes beside those that stay`, async (scene) => {
  const [first, second] = scene.nodes;
  const moving = await Promise.all([first, second].map((node) => scene.pod({ node, app: "web" })));
  for (let change = 0; change < CHANGES / 2; change++) {
    await Promise.all(moving.map((pod) => pod.setReady(change % 2 === 1)));
  }
  await Promise.all(moving.map((pod) => pod.setReady(false)));
});

/** How often agents look whether their rules are there, and time to write them. */
const REPAIR_MS = 2_000 + 3_000;

const HOUR_BY_DATE = ["+1 hour", "-1 hour"] as const;

const clock: Spec = {
  ...withoutLoss("the clock stepped by an hour, forth and back: changes still come through", async (scene) => {
    const [node] = scene.nodes;
    for (const [step, by] of HOUR_BY_DATE.entries()) {
      await node.run(["date", `--set=${by}`]);
      const app = `late-${step}`;
      const late = await scene.pod({ node, app });
      const service = await scene.service(app, { selector: { app }, ports });
      await expectAnswers(node, { to: service.clusterIP, port: 80 }, { by: [late] });
    }
  }),
  unfit: ({ ownKernel }) => (ownKernel === true ? undefined : "the clock is the machine's"),
};

const flushed: Spec = {
  ...common,
  name: "tables flushed: whole again within a sync period",
  unfit: ({ mode }) =>
    mode === "iptables" || mode === "userspace" ? undefined : "flushes the tables of iptables mode",
  run: async (scene) => {
    const { ways, caller, by, atService } = await openStage(scene);
    const traffic = startTraffic(ways, scene.later);
    await sleep(1_000);
    const tool = scene.family === "IPv4" ? "iptables" : "ip6tables";
    await each(scene, async (node) => {
      await node.run([tool, "-t", "nat", "-F"]);
      await node.run([tool, "-F"]);
    });
    await sleep(REPAIR_MS + 1_000);
    const seen = await traffic.stop();
    if (seen.longestGapMs > REPAIR_MS) throw new Error(`wanted a gap of ${REPAIR_MS} ms at most; ${figures(seen)}`);
    await expectAnswers(caller, atService, { by });
    return figures(seen);
  },
};

export const faults: readonly Spec[] = [killed, frozen, apiAway, cut, rolling, clock, flushed];

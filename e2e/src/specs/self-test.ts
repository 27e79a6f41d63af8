import type { ByHand } from "@fairlead/lab/faults";
import { modeNamed } from "@fairlead/lab/modes";
import type { ClusterNode } from "@fairlead/lab/provider/cluster";
import { expectAnswers, expectLost, expectRefused, expectUntouched, type Target } from "./expect.ts";
import { each } from "./faults/stage.ts";
import { expectNoTrace } from "./multi-cni/untouched.ts";
import type { Scene, Spec } from "./spec.ts";

/** Rules are removed by hand in the mode's own chains. */
const unfit: Spec["unfit"] = ({ mode }) =>
  modeNamed(mode).byHand === undefined ? `nobody knows how to remove the rules of ${mode} mode` : undefined;
const common = { suite: "self-test", alone: true, unfit } as const;

const PORTS = [{ port: 80 }];
/** What is wrong stays wrong, so it need not be watched for long. */
const SOON = { withinMs: 500 };

/** From now on nothing repairs anything; after the spec everything is in order again. */
async function stopRepairs(scene: Scene): Promise<void> {
  scene.later(() =>
    each(scene, async ({ agent }) => {
      await agent.signal("SIGCONT");
      await agent.restart();
    }),
  );
  await each(scene, ({ agent }) => agent.signal("SIGSTOP"));
}

async function expectFailure(what: string, assertion: Promise<void>): Promise<void> {
  const failed = await assertion.then(
    () => false,
    () => true,
  );
  if (!failed) throw new Error(`${what} held although its rule was gone`);
}

/** A service with one endpoint on the second node, and somebody on the first. */
async function workload(scene: Scene, spec: Readonly<Record<string, unknown>> = {}) {
  const [first, second] = scene.nodes;
  const [web, caller] = await Promise.all([scene.pod({ node: second, app: "web" }), scene.pod({ node: first })]);
  const service = await scene.service("web", { type: "LoadBalancer", selector: { app: "web" }, ports: PORTS, ...spec });
  const target: Target = { to: service.clusterIP, port: 80 };
  return { web, caller, service, target };
}

const undermine = (scene: Scene, node: ClusterNode, what: Exclude<keyof ByHand, "leadAway" | "noService">) =>
  node.run(byHandOn(scene)[what](scene.family));

function byHandOn({ cluster }: Scene): ByHand {
  const { byHand } = modeNamed(cluster.mode);
  if (byHand === undefined) throw new Error(`nobody knows how to remove the rules of ${cluster.mode} mode`);
  return byHand;
}

const answers: Spec = {
  ...common,
  name: "the checker sees that nobody answers any more",
  run: async (scene) => {
    const { web, caller, target } = await workload(scene);
    await expectAnswers(caller, target, { by: [web] });
    await stopRepairs(scene);
    await undermine(scene, scene.nodes[0], "noServices");
    await expectFailure("an answer", expectAnswers(caller, { ...target, ...SOON }, { by: [web] }));
  },
};

const whoAnswers: Spec = {
  ...common,
  name: "the checker sees that the wrong one answers, and that one never does",
  run: async (scene) => {
    const { web, caller, target } = await workload(scene);
    await expectAnswers(caller, target, { by: [web] });
    const soon = { ...target, ...SOON };
    await expectFailure("an answer of somebody else", expectAnswers(caller, soon, { by: [caller] }));
    await expectFailure("an answer of two", expectAnswers(caller, soon, { by: [web, caller] }));
  },
};

const source: Spec = {
  ...common,
  name: "the checker sees that nothing is masqueraded any more",
  run: async (scene) => {
    const { cluster, family } = scene;
    const [, second] = scene.nodes;
    const { web, service } = await workload(scene);
    const notSeen = cluster.outside.addresses[family] ?? "";
    const target = { to: second.addresses[family] ?? "", port: service.nodePort };
    await expectAnswers(cluster.outside, target, { by: [web], notSeen });
    await stopRepairs(scene);
    await undermine(scene, second, "noMasquerade");
    await expectFailure(
      "a hidden source",
      expectAnswers(cluster.outside, { ...target, ...SOON }, { by: [web], notSeen }),
    );
    await expectAnswers(cluster.outside, target, { by: [web], seen: notSeen });
  },
};

const refused: Spec = {
  ...common,
  name: "the checker sees that nobody refuses any more",
  run: async (scene) => {
    const [first] = scene.nodes;
    const { web, caller, target } = await workload(scene);
    await expectAnswers(caller, target, { by: [web] });
    await web.remove();
    await expectRefused(caller, target);
    await stopRepairs(scene);
    await undermine(scene, first, "noRefusal");
    await expectFailure("a refusal", expectRefused(caller, { ...target, ...SOON }));
  },
};

const lost: Spec = {
  ...common,
  name: "the checker sees that nothing keeps others out any more",
  run: async (scene) => {
    const { cluster, family } = scene;
    const [first] = scene.nodes;
    const range = `${cluster.outside.addresses[family]}/${family === "IPv4" ? 32 : 128}`;
    const { web, caller, service } = await workload(scene, { loadBalancerSourceRanges: [range] });
    const to = cluster.gateAddress(first, family);
    await service.setIngress([to]);
    await expectAnswers(cluster.outside, { to, port: 80 }, { by: [web] });
    await expectLost(caller, { to, port: 80 });
    await stopRepairs(scene);
    await undermine(scene, first, "noSourceRanges");
    await expectFailure("silence", expectLost(caller, { to, port: 80, ...SOON }));
  },
};

const untouched: Spec = {
  ...common,
  name: "the checker sees a rule for what is to be left alone",
  run: async (scene) => {
    const [first] = scene.nodes;
    const caller = await scene.pod({ node: first });
    const to = scene.cluster.gateAddress(first, scene.family);
    await expectUntouched(first, { to, port: 80 });
    await expectNoTrace(scene, to);
    await stopRepairs(scene);
    await first.run(byHandOn(scene).leadAway(scene.family, to, caller.addresses[scene.family] ?? ""));
    await expectFailure("being left alone", expectUntouched(first, { to, port: 80, ...SOON }));
    await expectFailure("no trace", expectNoTrace(scene, to, SOON.withinMs));
  },
};

export const checker: readonly Spec[] = [answers, whoAnswers, source, refused, lost, untouched];

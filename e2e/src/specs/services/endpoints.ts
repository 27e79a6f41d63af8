import { expectAnswers, expectRefused } from "../expect.ts";
import { nearAndFar } from "../near-and-far.ts";
import type { Spec } from "../spec.ts";

const PORTS = [{ port: 80 }];

const affinity: Spec = {
  name: "session affinity: a client stays with one endpoint",
  suite: "services",
  run: async (scene) => {
    const [first, second] = scene.nodes;
    const [caller, ...webs] = await Promise.all([
      scene.pod({ node: first }),
      ...[first, first, second, second].map((node) => scene.pod({ node, app: "web" })),
    ]);
    const service = await scene.service("web", { sessionAffinity: "ClientIP", selector: { app: "web" }, ports: PORTS });
    const target = { to: service.clusterIP, port: 80 };
    await scene.until("one endpoint for all requests", async () => {
      const results = await caller.send({ protocol: "TCP", ...target, count: 24, parallel: 4, timeoutMs: 2_500 });
      const servers = new Set(results.map((result) => (result.kind === "answer" ? result.server : result.kind)));
      const [only = ""] = servers;
      return servers.size === 1 && webs.some(({ name }) => name === only) ? undefined : [...servers].join(", ");
    });
  },
};

const terminating: Spec = {
  name: "terminating endpoints: passed over while others are ready, used when there is nobody else",
  suite: "services",
  run: async (scene) => {
    const { near: staying, far: going, caller } = await nearAndFar(scene);
    const service = await scene.service("web", { selector: { app: "web" }, ports: PORTS });
    const target = { to: service.clusterIP, port: 80 };
    await expectAnswers(caller, target, { by: [staying, going] });
    await going.terminate();
    await expectAnswers(caller, target, { by: [staying] });
    await staying.terminate();
    await expectAnswers(caller, target, { by: [staying, going] });
    await Promise.all([staying.remove(), going.remove()]);
    await expectRefused(caller, target);
  },
};

const zones: Spec = {
  name: "trafficDistribution PreferSameZone: each zone uses its own endpoints, all where it has none",
  suite: "services",
  run: async (scene) => {
    const [, second] = scene.nodes;
    const { near: here, far: there, caller: callerHere } = await nearAndFar(scene);
    const callerThere = await scene.pod({ node: second });
    const spec = { trafficDistribution: "PreferSameZone", selector: { app: "web" }, ports: PORTS };
    const service = await scene.service("web", spec);
    const target = { to: service.clusterIP, port: 80 };
    await expectAnswers(callerHere, target, { by: [here] });
    await expectAnswers(callerThere, target, { by: [there] });
    await there.remove();
    await expectAnswers(callerThere, target, { by: [here] });
  },
};

const sameNode: Spec = {
  name: "trafficDistribution PreferSameNode: each node uses its own endpoint",
  suite: "services",
  run: async (scene) => {
    const [, second] = scene.nodes;
    const { near: here, far: there, caller } = await nearAndFar(scene);
    const spec = { trafficDistribution: "PreferSameNode", selector: { app: "web" }, ports: PORTS };
    const service = await scene.service("web", spec);
    const target = { to: service.clusterIP, port: 80 };
    await expectAnswers(caller, target, { by: [here] });
    await expectAnswers(second, target, { by: [there] });
    await here.setReady(false);
    await expectAnswers(caller, target, { by: [there] });
  },
};

export const endpoints: readonly Spec[] = [affinity, terminating, zones, sameNode];

import { modeNamed } from "@fairlead/lab/modes";
import { expectAnswers, expectLost, expectRefused } from "../expect.ts";
import type { Spec } from "../spec.ts";
import { keptSource } from "./reach.ts";

const PORTS = [{ port: 80 }];

const externalLocal: Spec = {
  name: "externalTrafficPolicy Local: the client's address is kept, nodes without an endpoint drop",
  suite: "services",
  run: async (scene) => {
    const { cluster, family, nodes } = scene;
    const [first, second] = nodes;
    const [web, caller] = await Promise.all([scene.pod({ node: first, app: "web" }), scene.pod({ node: second })]);
    const spec = { type: "LoadBalancer", externalTrafficPolicy: "Local", selector: { app: "web" }, ports: PORTS };
    const service = await scene.service("web", spec);
    const [here, there] = [cluster.gateAddress(first, family), cluster.gateAddress(second, family)];
    await service.setIngress([here, there]);
    const wanted = { by: [web], ...keptSource(scene, cluster.outside) };
    const port = service.nodePort;
    await expectAnswers(cluster.outside, { to: first.addresses[family] ?? "", port }, wanted);
    await expectAnswers(cluster.outside, { to: here, port: 80 }, wanted);
    if (modeNamed(cluster.mode).dropsExternalLocal) {
      await expectLost(cluster.outside, { to: second.addresses[family] ?? "", port });
      await expectLost(cluster.outside, { to: there, port: 80 });
    }
    // From inside the cluster the policy does not count: the short cut.
    await expectAnswers(caller, { to: there, port: 80 }, { by: [web] });
    await expectAnswers(second, { to: there, port: 80 }, { by: [web] });
  },
};

const healthCheck: Spec = {
  name: "externalTrafficPolicy Local: the health check port says which node has an endpoint",
  suite: "services",
  run: async (scene) => {
    const [first, second] = scene.nodes;
    const web = await scene.pod({ node: first, app: "web" });
    const spec = { type: "LoadBalancer", externalTrafficPolicy: "Local", selector: { app: "web" }, ports: PORTS };
    const { healthCheckNodePort } = await scene.service("web", spec);
    await scene.until("200 here and 503 there", async () => {
      const answers = await Promise.all(
        [first, second].map((node) => node.agent.status(scene.family, healthCheckNodePort)),
      );
      return answers.join(" ") === "200 503" ? undefined : answers.join(" ");
    });
    await web.remove();
    await scene.until("503 everywhere", async () => {
      const answers = await Promise.all(
        [first, second].map((node) => node.agent.status(scene.family, healthCheckNodePort)),
      );
      return answers.join(" ") === "503 503" ? undefined : answers.join(" ");
    });
  },
};

const noEndpoints: Spec = {
  name: "no endpoints: refused at every address until one comes, and again when it is gone",
  suite: "services",
  run: async (scene) => {
    const { cluster, family } = scene;
    const [first, second] = scene.nodes;
    const caller = await scene.pod({ node: first });
    const service = await scene.service("web", { type: "NodePort", selector: { app: "web" }, ports: PORTS });
    const target = { to: service.clusterIP, port: 80 };
    const atNode = { to: second.addresses[family] ?? "", port: service.nodePort };
    const refused = async () => {
      await expectRefused(caller, target);
      await expectRefused(first, target);
      await expectRefused(cluster.outside, atNode);
    };
    await refused();
    const web = await scene.pod({ node: second, app: "web" });
    await expectAnswers(caller, target, { by: [web] });
    await expectAnswers(cluster.outside, atNode, { by: [web] });
    await web.setReady(false);
    await refused();
  },
};

export const policies: readonly Spec[] = [externalLocal, healthCheck, noEndpoints];

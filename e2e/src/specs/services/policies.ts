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

const NODE_PORT_ADDRESSES = "fairlead.dev/node-port-addresses";

const chosenNodePorts: Spec = {
  name: "node ports on chosen networks: on the node's, on others, and with a value that cannot be read, which is reported",
  suite: "services",
  run: async (scene) => {
    const { cluster, family } = scene;
    const [first] = scene.nodes;
    const web = await scene.pod({ node: first, app: "web" });
    const to = first.addresses[family] ?? "";
    const spec = { type: "NodePort", selector: { app: "web" }, ports: PORTS };
    const own = { [NODE_PORT_ADDRESSES]: `${to}/${family === "IPv4" ? 32 : 128}` };
    const service = await scene.service("web", spec, own);
    const target = { to, port: service.nodePort };
    await expectAnswers(cluster.outside, target, { by: [web] });
    for (const value of ["192.0.2.0/24,2001:db8::/64", "eth1"]) {
      await service.annotate(NODE_PORT_ADDRESSES, value);
      await expectRefused(cluster.outside, target);
      await expectAnswers(first, { to: service.clusterIP, port: 80 }, { by: [web] });
      await scene.until(`a line about ${value}`, async () => {
        const lines = (await first.agent.log()).split("\n");
        const isAbout = (line: string) =>
          [value, NODE_PORT_ADDRESSES, scene.namespace].every((one) => line.includes(one));
        return lines.some(isAbout) ? undefined : lines.at(-2);
      });
    }
    await service.annotate(NODE_PORT_ADDRESSES, null);
    await expectAnswers(cluster.outside, target, { by: [web] });
  },
};

const internalLocal: Spec = {
  name: "internalTrafficPolicy Local: pods and nodes without an endpoint beside them are dropped, in ipvs mode refused",
  suite: "services",
  run: async (scene) => {
    const expectNobody = { refused: expectRefused, lost: expectLost }[modeNamed(scene.cluster.mode).emptyInternalLocal];
    const [first, second] = scene.nodes;
    const [web, near, far] = await Promise.all([
      scene.pod({ node: first, app: "web" }),
      scene.pod({ node: first }),
      scene.pod({ node: second }),
    ]);
    const service = await scene.service("web", {
      internalTrafficPolicy: "Local",
      selector: { app: "web" },
      ports: PORTS,
    });
    const target = { to: service.clusterIP, port: 80 };
    await expectAnswers(near, target, { by: [web] });
    await expectAnswers(first, target, { by: [web] });
    await expectNobody(far, target);
    await expectNobody(second, target);
  },
};

const sourceRanges: Spec = {
  name: "loadBalancerSourceRanges: the load balancer's address is closed to others, the ClusterIP is not",
  suite: "services",
  run: async (scene) => {
    const { cluster, family } = scene;
    const { outside, strangerAddresses } = cluster;
    const [node] = scene.nodes;
    const [web, caller] = await Promise.all([scene.pod({ node, app: "web" }), scene.pod({ node })]);
    const range = `${outside.addresses[family]}/${family === "IPv4" ? 32 : 128}`;
    const spec = { type: "LoadBalancer", loadBalancerSourceRanges: [range], selector: { app: "web" }, ports: PORTS };
    const service = await scene.service("web", spec);
    const to = cluster.gateAddress(node, family);
    await service.setIngress([to]);
    const source = strangerAddresses[family] ?? "";
    await expectAnswers(outside, { to, port: 80 }, { by: [web] });
    await expectLost(outside, { to, port: 80, source });
    await expectLost(caller, { to, port: 80 });
    await expectAnswers(caller, { to: service.clusterIP, port: 80 }, { by: [web] });
    await expectAnswers(outside, { to: node.addresses[family] ?? "", port: service.nodePort, source }, { by: [web] });
  },
};

const nobody: Spec = {
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

export const policies: readonly Spec[] = [
  externalLocal,
  healthCheck,
  chosenNodePorts,
  internalLocal,
  sourceRanges,
  nobody,
];

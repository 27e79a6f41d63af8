/** Nodes with two uplinks. */

import { setTimeout as sleep } from "node:timers/promises";
import type { IPFamily } from "@fairlead/core";
import type { Client, ClusterNode } from "@fairlead/lab/provider/cluster";
import type { SecondUplink } from "@fairlead/lab/second-uplink";
import { expectAnswers, expectLost } from "./expect.ts";
import { startTraffic, type TrafficFlow, withoutFailure } from "./faults/stage.ts";
import { configFlag } from "./operator.ts";
import { able, type Figures, nearAndFar, needs, onlyIn, type Scene, type ServiceHandle, type Spec } from "./spec.ts";

/** On every address of the node, in every mode. */
const EVERYWHERE = { nodePortAddresses: ["0.0.0.0/0", "::/0"] };

const LONGEST_MS = 300_000;

const unfit: ReturnType<typeof needs> = (shape) =>
  needs("second-uplink")(shape) ?? onlyIn(["iptables", "nftables"], "pnpm e2e --all 'ipvs qemu' has ipvs mode")(shape);

/** A node with two uplinks and two services that are reached by both. */
interface Stage {
  readonly node: ClusterNode;
  readonly uplink: SecondUplink;
  readonly by: readonly Client[];
  readonly near: Client;
  /** Of policy Cluster, and of policy Local. */
  readonly services: readonly [Served, Served];
  readonly external: string;
}

/** What a client of the first uplink asks. */
const onFirst = (stage: Stage, { cluster, family }: Scene) =>
  flowsOf(stage, cluster.outside, stage.node.addresses[family] ?? "");
/** The same of the second. */
const onSecond = (stage: Stage, { family }: Scene) => flowsOf(stage, stage.uplink.client, stage.uplink.address(family));

/** Larger than what IPv6 has everywhere, smaller than all other links. */
const NARROW = 1300;

/** Sends one datagram, the first of its connection. */
const SEND_LARGE = `
  const [to, family] = process.argv.slice(1);
  const socket = require("node:dgram").createSocket(family === "IPv6" ? "udp6" : "udp4");
  socket.on("error", () => {}).send(Buffer.alloc(1400), 80, to, () => socket.close());
`;

const FLAGS: Readonly<Record<IPFamily, string>> = { IPv4: "-4", IPv6: "-6" };

export const twoUplinks: Spec = {
  name: "replyVia: a node's second uplink goes, returns, is made anew and gets another address, and its agent is killed",
  suite: "faults",
  unfit,
  run: throughChanges,
};

/** The clients of the second uplink lose nothing either while something happens that does not touch it. */
async function underLoad(scene: Scene, stage: Stage, act: () => Promise<void>): Promise<Figures> {
  const traffic = startTraffic([onSecond(stage, scene)], scene.later, LONGEST_MS);
  await sleep(1_000);
  await act();
  await sleep(1_000);
  return withoutFailure(await traffic.stop());
}

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
  await expectReported(stage, scene);
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

const PORTS = [
  { name: "tcp", port: 80 },
  { name: "udp", port: 80, protocol: "UDP" },
];

interface Served {
  readonly service: ServiceHandle;
  readonly loadBalancer: string;
}

async function openStage(scene: Scene): Promise<Stage> {
  const { cluster, family } = scene;
  const [node] = scene.nodes;
  const uplink = await able(node.openSecondUplink)();
  scene.later(uplink.dispose);
  const { near, by } = await nearAndFar(scene);
  const external = cluster.gateAddress(node, family);
  const serve = async (name: string, fields: Readonly<Record<string, unknown>>): Promise<Served> => {
    const spec = { type: "LoadBalancer", selector: { app: "web" }, ports: PORTS, ...fields };
    const service = await scene.service(name, spec);
    const loadBalancer = cluster.gateAddress(node, family);
    await service.setIngress([loadBalancer]);
    return { service, loadBalancer };
  };
  const services = [
    await serve("web", { externalIPs: [external] }),
    await serve("kept", { externalTrafficPolicy: "Local" }),
  ] as const;
  return { node, uplink, by, near, services, external };
}

/** All addresses of the services, asked by a client to which the node has that address. */
function flowsOf({ services: [web, kept], external }: Stage, from: Client, nodeAddress: string): TrafficFlow[] {
  return [
    { from, to: nodeAddress, port: web.service.nodePort },
    { from, to: web.loadBalancer, port: 80 },
    { from, to: external, port: 80 },
    { from, to: web.loadBalancer, port: 80, protocol: "UDP" },
    { from, to: kept.loadBalancer, port: 80 },
    { from, to: kept.loadBalancer, port: 80, protocol: "UDP" },
    { from, to: nodeAddress, port: kept.service.nodePort },
  ];
}

async function expectAll({ near, by, services: [, kept] }: Stage, flows: readonly TrafficFlow[]): Promise<void> {
  const isLocal = ({ to, port }: TrafficFlow) => to === kept.loadBalancer || port === kept.service.nodePort;
  await Promise.all(flows.map((flow) => expectAnswers(flow.from, flow, { by: isLocal(flow) ? [near] : by })));
}

/** Large answers, which a router behind the second uplink refuses to forward as they are. */
async function expectLarge({ uplink, services }: Stage): Promise<void> {
  await uplink.narrow(NARROW);
  for (const { loadBalancer } of services) {
    const probe = { protocol: "TCP", to: loadBalancer, port: 80, padding: 200_000, timeoutMs: 15_000 } as const;
    const results = await uplink.client.send({ ...probe, count: 8, parallel: 8 });
    const wrong = results.filter((one) => one.kind !== "answer" || one.padding !== probe.padding);
    if (wrong.length > 0) throw new Error(`wanted ${probe.padding} bytes each; came ${JSON.stringify(wrong)}`);
  }
}

/**
 * The way to an endpoint gets narrow behind the node: it says so to the client, by the client's uplink and from the
 * address that the client has sent to, which the client's kernel heeds.
 */
async function expectReported({ node, uplink, near, services }: Stage, scene: Scene): Promise<void> {
  const { family } = scene;
  const pod = near.addresses[family] ?? "";
  const way = FLAGS[family];
  const { stdout } = await node.run(["ip", "-json", way, "route", "get", pod]);
  const [{ dev }]: readonly [{ readonly dev: string }] = JSON.parse(stdout);
  await node.run(["ip", way, "route", "add", pod, "dev", dev, "mtu", "lock", String(NARROW)]);
  scene.later(async () => void (await node.run(["ip", way, "route", "delete", pod, "dev", dev])));
  const [, { loadBalancer }] = services;
  await scene.until(`the client to learn that ${NARROW} bytes fit`, async () => {
    await uplink.run([process.execPath, "-e", SEND_LARGE, loadBalancer, family]);
    const { stdout: known } = await uplink.run(["ip", way, "route", "get", loadBalancer]);
    return known.includes(`mtu ${NARROW}`) ? undefined : known;
  });
}

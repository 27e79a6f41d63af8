import type { IPFamily } from "@fairlead/core";
import type { Scene } from "../scene.ts";
import type { Stage } from "./stage.ts";

/** Larger than what IPv6 has everywhere, smaller than all other links. */
const NARROW = 1300;

/** Large answers, which a router behind the second uplink refuses to forward as they are. */
export async function expectLarge({ uplink, services }: Stage): Promise<void> {
  await uplink.narrow(NARROW);
  for (const { loadBalancer } of services) {
    const probe = { protocol: "TCP", to: loadBalancer, port: 80, padding: 200_000, timeoutMs: 5_000 } as const;
    const results = await uplink.client.send({ ...probe, count: 8, parallel: 8 });
    const wrong = results.filter((one) => one.kind !== "answer" || one.padding !== probe.padding);
    if (wrong.length > 0) throw new Error(`wanted ${probe.padding} bytes each; came ${JSON.stringify(wrong)}`);
  }
}

/** Sends one datagram, the first of its connection. */
const SEND_LARGE = `
  const [to, family] = process.argv.slice(1);
  const socket = require("node:dgram").createSocket(family === "IPv6" ? "udp6" : "udp4");
  socket.on("error", () => {}).send(Buffer.alloc(1400), 80, to, () => socket.close());
`;

/**
 * The way to an endpoint gets narrow behind the node: it says so to the client, by the client's uplink and from the
 * address that the client has sent to, which the client's kernel heeds.
 */
export async function expectTold({ node, uplink, near, services }: Stage, scene: Scene): Promise<void> {
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

const FLAGS: Readonly<Record<IPFamily, string>> = { IPv4: "-4", IPv6: "-6" };

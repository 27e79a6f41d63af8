import { expect, test } from "vitest";
import { type Connection, createRunner, createTrackingTools, openTracking, type Tracking } from "../../src/index.ts";
import { createNamespace, netlinkIn } from "../../src/netns/index.ts";
import { kernelSuite } from "../kernel-test.ts";
import { flow, track, v6 } from "./cases.ts";

kernelSuite("on the kernel", () => {
  const entries = [flow(), flow({ protocol: "TCP" }), flow({ protocol: "SCTP" }), v6];
  const keyOf = ({ family, protocol, original, reply, state, replied }: Connection) =>
    `${family} ${protocol} ${state} ${replied} ${JSON.stringify([original, reply])}`;

  async function all(tracking: Tracking): Promise<readonly Connection[]> {
    const found: Connection[] = [];
    for await (const connection of tracking.list()) found.push(connection);
    return found;
  }

  test("netlink and conntrack-tools list the same", async () => {
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix });
    for (const [client, entry] of entries.entries()) await track(runner, entry, client);
    await track(runner, flow(), 99, ["--zone", "5"]);
    const { netfilter, listening } = netlinkIn(namespace);
    const found = await all(await openTracking(runner, { open: netfilter, listen: listening }));
    expect(found.map(keyOf).sort()).toEqual((await all(createTrackingTools(runner))).map(keyOf).sort());
    expect(found).toHaveLength(entries.length);
    expect(found.find(({ protocol }) => protocol === "TCP")).toMatchObject({
      ...{ family: "IPv4", state: "ESTABLISHED" },
      original: { source: "10.144.9.9", destination: "10.96.0.10", sourcePort: 20_001, destinationPort: 53 },
      reply: { source: "10.144.0.5", sourcePort: 5353, destination: "10.144.9.9", destinationPort: 20_001 },
    });
    for (const { expires } of found) expect(expires).toBeLessThanOrEqual(1_000);
  });

  test("connections that come and go are told while somebody listens, and no longer", async () => {
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix });
    const { netfilter, listening } = netlinkIn(namespace);
    const tracking = await openTracking(runner, { open: netfilter, listen: listening });
    const stop = new AbortController();
    const events = (await tracking.follow(stop.signal))[Symbol.asyncIterator]();
    await track(runner, flow({ protocol: "TCP" }), 1);
    expect((await events.next()).value).toMatchObject({
      kind: "new",
      connection: { protocol: "TCP", state: "ESTABLISHED" },
    });
    await runner.run(["conntrack", "-D", "-p", "tcp"]);
    expect((await events.next()).value).toMatchObject({
      kind: "gone",
      connection: { original: { sourcePort: 20_001 }, reply: { source: "10.144.0.5" } },
    });
    stop.abort();
    expect((await events.next()).done).toBe(true);
  });
});

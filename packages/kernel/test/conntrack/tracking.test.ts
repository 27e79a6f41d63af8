import { describe, expect, test } from "vitest";
import { parseConnection, parseConnectionEvent } from "../../src/conntrack/parse-connection.ts";
import { type Connection, createRunner, createTrackingTools, openTracking, type Tracking } from "../../src/index.ts";
import { createNamespace, netlinkIn } from "../../src/netns/index.ts";
import { kernelSuite } from "../kernel-test.ts";
import { flow, track, v6 } from "./cases.ts";

const LINE =
  "tcp      6 431999 ESTABLISHED src=10.144.1.9 dst=10.96.0.10 sport=40000 dport=80 packets=3 bytes=180 src=10.144.2.6 dst=10.144.1.9 sport=8080 dport=40000 packets=2 bytes=120 [ASSURED] mark=0 use=1";
const CONNECTION: Connection = {
  family: "IPv4",
  protocol: "TCP",
  original: { source: "10.144.1.9", destination: "10.96.0.10", sourcePort: 40_000, destinationPort: 80 },
  reply: { source: "10.144.2.6", destination: "10.144.1.9", sourcePort: 8080, destinationPort: 40_000 },
  state: "ESTABLISHED",
  replied: true,
  expires: 431_999,
  sent: { bytes: 180, packets: 3 },
  received: { bytes: 120, packets: 2 },
};

describe("what conntrack prints", () => {
  test("an entry with counters", () => {
    expect(parseConnection(LINE, "IPv4")).toEqual(CONNECTION);
  });

  test.each([
    [
      "an entry of a protocol without ports",
      "icmp     1 29 src=10.0.0.1 dst=10.0.0.2 type=8 code=0 id=1 src=10.0.0.2 dst=10.0.0.1",
    ],
    ["another zone's", LINE.replace(" mark=0", " mark=0 zone=5")],
    ["the summary", "conntrack v1.4.7 (conntrack-tools): 2 flow entries have been shown."],
  ])("no entry: %s", (_what, line) => {
    expect(parseConnection(line, "IPv4")).toBeUndefined();
  });

  test.each([
    [
      "    [NEW] udp      17 30 src=10.144.1.9 dst=10.96.0.10 sport=1000 dport=53 [UNREPLIED] src=10.144.2.6 dst=10.144.1.9 sport=53 dport=1000",
      "new",
      { replied: false, expires: 30 },
    ],
    [
      " [UPDATE] tcp      6 60 SYN_RECV src=10.144.1.9 dst=10.96.0.10 sport=1 dport=80 src=10.144.2.6 dst=10.144.1.9 sport=8080 dport=1",
      "update",
      { state: "SYN_RECV", replied: true },
    ],
    [
      "[DESTROY] tcp      6 src=10.144.1.9 dst=10.96.0.10 sport=1 dport=80 packets=3 bytes=180 src=10.144.2.6 dst=10.144.1.9 sport=8080 dport=1 packets=2 bytes=120",
      "gone",
      { sent: { bytes: 180, packets: 3 } },
    ],
    [
      "[DESTROY] tcp      6 TIME_WAIT src=10.144.1.9 dst=10.96.0.10 sport=1 dport=80 src=10.144.2.6 dst=10.144.1.9 sport=8080 dport=1",
      "gone",
      { state: "TIME_WAIT" },
    ],
  ])("event %#", (line, kind, connection) => {
    expect(parseConnectionEvent(line, "IPv4")).toMatchObject({ kind, connection });
  });
});

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
    for (const { expires } of found) expect(expires).toBeLessThanOrEqual(100);
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

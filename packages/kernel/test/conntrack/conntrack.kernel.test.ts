import { findAttribute } from "@fairlead/netfilter/netlink";
import { describe, expect } from "vitest";
import { createConntrackTools, createNetlinkConntrack } from "../../src/conntrack/conntrack.ts";
import { decodeEntry, encodeDump, entry } from "../../src/conntrack/messages.ts";
import {
  type Connection,
  type ConnectionEvent,
  type Conntrack,
  createTrackingTools,
  openNetfilterSocket,
  openTracking,
  type Tracking,
} from "../../src/index.ts";
import { datagrams } from "../../src/netlink/requests.ts";
import { DATAGRAM_SIZE } from "../../src/netlink/socket.ts";
import { insideTest, kernelTest, type TestKernel } from "../kernel-test.ts";
import {
  cases,
  check,
  checkZones,
  clientsOf,
  flow,
  flowKey,
  type Kind,
  sweepAll,
  track,
  tracked,
  v6,
} from "./cases.ts";

describe.for<[string, typeof kernelTest, (kernel: TestKernel) => Conntrack]>([
  ["netlink", insideTest, () => createNetlinkConntrack(openNetfilterSocket)],
  ["conntrack-tools", kernelTest, ({ runner }) => createConntrackTools(runner)],
])("%s", ([, onKernel, open]) => {
  for (const given of cases) {
    onKernel(`delete ${given.name}`, async (kernel) => {
      await track(kernel.runner, clientsOf(tracked));
      await check(open(kernel), given);
    });
  }

  onKernel("entries in other networks' zones are not touched", (kernel) => checkZones(kernel.runner, open(kernel)));
});

insideTest("1,000 different flows of 5,000 entries, in one pass over the table", async ({ runner }) => {
  const service = (number: number) => `10.96.${number >> 8}.${number & 0xff}`;
  const stale = Array.from({ length: 1_000 }, (_, number) =>
    flow({ originalDestination: service(number), replySource: "10.145.0.1" }),
  );
  const serving = Array.from({ length: 4_000 }, (_, number) => flow({ originalDestination: service(number % 1_000) }));
  await track(runner, clientsOf([...serving, ...stale]));
  const conntrack = createNetlinkConntrack(openNetfilterSocket);
  const udp: readonly Kind[] = [{ family: "IPv4", protocol: "UDP" }];
  // A pass for each flow would see each entry a thousand times.
  expect(await sweepAll(conntrack, stale, udp)).toHaveLength(5_000);
  const left = await sweepAll(conntrack, [], udp);
  expect(left).toHaveLength(4_000);
  expect(new Set(left)).toEqual(new Set(serving.map(flowKey)));
});

/**
 * ctnetlink_dump_table of net/netfilter/nf_conntrack_netlink.c counts no changes (cb->seq), so its listings need no
 * second reading: what stays is in them, whatever comes and goes meanwhile.
 */
insideTest("a listing of connections is never interrupted, and has all that stay", async ({ runner }) => {
  const [steady, moving] = [6_000, 1_000];
  const insert = (count: number, originalPort: number) =>
    track(runner, clientsOf(Array.from({ length: count }, () => flow({ originalPort, replyPort: originalPort }))));
  await insert(steady, 53);
  await insert(moving, 54);
  const socket = await openNetfilterSocket();
  const room = Buffer.alloc(DATAGRAM_SIZE);
  /** The original direction of each: the client says which it is. */
  const seen = new Set<string>();
  let [interrupted, parts] = [0, 0];
  for await (const part of datagrams(socket, encodeDump("IPv4", "UDP"), "reading conntrack entries", () => room)) {
    parts += 1;
    if (part.interrupted) interrupted += 1;
    for (const message of part.messages) {
      const found = decodeEntry(part.bytes, message, "IPv4", "UDP");
      const original = findAttribute(part.bytes, message, entry.original);
      if (found?.originalPort !== 53 || original === undefined) continue;
      seen.add(part.bytes.subarray(original.start, original.end).toString("hex"));
    }
    if (parts === 5) await runner.run(["sh", "-c", "exec conntrack -D -p udp --dport 54 >/dev/null"]);
    if (parts === 10) await insert(moving, 55);
  }
  await socket.close();
  expect(parts).toBeGreaterThan(20);
  expect({ interrupted, steady: seen.size }).toEqual({ interrupted: 0, steady });
});

describe("tracking", () => {
  const entries = [flow(), flow({ protocol: "TCP" }), flow({ protocol: "SCTP" }), v6];
  const keyOf = ({ family, protocol, original, reply, state, replied }: Connection) =>
    `${family} ${protocol} ${state} ${replied} ${JSON.stringify([original, reply])}`;

  async function all(tracking: Tracking): Promise<readonly Connection[]> {
    const found: Connection[] = [];
    for await (const connection of tracking.list()) found.push(connection);
    return found;
  }

  insideTest("netlink and conntrack-tools list the same", async ({ runner }) => {
    await track(runner, [...clientsOf(entries), [flow(), 99, "--zone 5"]]);
    const found = await all(await openTracking(runner));
    expect(found.map(keyOf).sort()).toEqual((await all(createTrackingTools(runner))).map(keyOf).sort());
    expect(found).toHaveLength(entries.length);
    expect(found.find(({ protocol }) => protocol === "TCP")).toMatchObject({
      ...{ family: "IPv4", state: "ESTABLISHED" },
      original: { source: "10.144.0.1", destination: "10.96.0.10", sourcePort: 20_001, destinationPort: 53 },
      reply: { source: "10.144.0.5", sourcePort: 5353, destination: "10.144.0.1", destinationPort: 20_001 },
    });
    for (const { expires } of found) expect(expires).toBeLessThanOrEqual(1_000);
  });

  insideTest("connections that come and go are reported only while a caller listens", async ({ runner }) => {
    const tracking = await openTracking(runner);
    const stop = new AbortController();
    const events = (await tracking.follow(stop.signal))[Symbol.asyncIterator]();
    await track(runner, [[flow({ protocol: "TCP" }), 1]]);
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

  insideTest(
    "2,000 events at a time, as of 20,000 a second, are all reported; more than fit are reported as lost",
    async ({ runner, signal }) => {
      const tracking = await openTracking(runner);
      const stop = new AbortController();
      const seen = { new: 0, update: 0, gone: 0, lost: 0 };
      const last = new Set<number>();
      const follow = async (events: AsyncIterable<ConnectionEvent>) => {
        for await (const event of events) {
          seen[event.kind] += 1;
          if (event.kind === "new") last.add(event.connection.original.destinationPort);
        }
      };
      const insert = (count: number, originalPort: number) =>
        track(runner, clientsOf(Array.from({ length: count }, () => flow({ originalPort, replyPort: originalPort }))));
      const [read, late] = [await tracking.follow(stop.signal), await tracking.follow(stop.signal)];
      const reading = follow(read);
      for (let round = 1; round <= 5; round++) {
        await insert(2_000, round);
        await expect.poll(() => seen.new).toBe(2_000 * round);
      }
      expect(seen).toEqual({ new: 10_000, update: 0, gone: 0, lost: 0 });
      await insert(20_000, 80);
      const readingLate = follow(late);
      await expect.poll(() => seen.lost).toBeGreaterThan(0);
      // What comes while the buffers are still full is lost as well.
      for (let port = 100; Math.max(...last) < 100; port++) {
        signal.throwIfAborted();
        await insert(1, port);
      }
      stop.abort();
      await Promise.all([reading, readingLate]);
    },
  );
});

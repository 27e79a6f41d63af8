import { VirtualClock } from "@fairlead/base/testing";
import { FleetCounts, FleetServer, type Limits, seeded } from "@fairlead/testkit/fleet";
import { expect, test } from "vitest";
import { createApiSource, type Subscription } from "../src/index.ts";
import { endAfterEach, later } from "./support/fake-api.ts";

endAfterEach();

/** A fifth of what was simulated for bench/findings.md, of a server with a fifth of the seats: FAIRLEAD_FLEET=5. */
const SCALE = Number(process.env["FAIRLEAD_FLEET"] ?? "1");
const AGENTS = 1000 * SCALE;
/** Services, EndpointSlices and the own Node. */
const RESOURCES = 3;
const ALL = AGENTS * RESOURCES;

/**
 * The nodes' priority level has 74 of the 600 seats that an API server has by default
 * (kubernetes.io/docs/concepts/cluster-administration/flow-control: system, 30 of 245 shares). Half a second for a list
 * is slow: 10,000 services take less.
 */
const LIMITS: Limits = { seats: 15 * SCALE, queue: 100 * SCALE, listMilliseconds: 500 };
/** Seconds that the server needs for a list of each, if no client ever asks twice and it is never idle. */
const LEAST = (ALL / LIMITS.seats) * (LIMITS.listMilliseconds / 1000);

function fleet(clock: VirtualClock, server: FleetServer): void {
  const stop = new AbortController();
  const subscription: Subscription<unknown> = { decode: (raw) => raw, onChange: () => {} };
  const random = seeded();
  const ended = Array.from({ length: AGENTS }, (_, number) =>
    createApiSource({
      connection: { server: "http://api", credentials: async () => ({ headers: {}, tls: {} }) },
      nodeName: `node-${number}`,
      userAgent: "fairlead-proxy/0.0.0",
      transport: server.transport,
      clock,
      random,
    }).run({ services: subscription, endpointSlices: subscription, node: subscription }, stop.signal),
  );
  later(async () => {
    stop.abort();
    await Promise.all(ended);
  });
}

/** Seconds until every watch is there. */
async function untilAllWatch(clock: VirtualClock, server: FleetServer): Promise<number> {
  const start = clock.monotonic();
  while (server.watches < ALL) {
    if (clock.monotonic() - start > 3_600_000) throw new Error(`${server.watches} of ${ALL} watches after an hour`);
    await clock.advance(1000);
  }
  return (clock.monotonic() - start) / 1000;
}

test("agents that start together, and lose their server together, share it", async () => {
  const clock = new VirtualClock();
  const server = new FleetServer(clock, LIMITS);
  fleet(clock, server);
  const start = { seconds: await untilAllWatch(clock, server), counts: server.counts };
  server.stop();
  server.counts = new FleetCounts();
  await clock.advance(60_000);
  const attemptsPerSecond = server.counts.unanswered / 60;
  server.up = true;
  const outage = { seconds: await untilAllWatch(clock, server), counts: server.counts };
  for (const { seconds, counts } of [start, outage]) {
    // Each has its list once: what the server has begun is never thrown away.
    expect(counts.lists).toBe(ALL);
    // It is hardly idle while a client waits, and no client asks in vain again and again.
    expect(seconds).toBeLessThan(2 * LEAST);
    expect(counts.allRequests).toBeLessThan(5 * ALL);
  }
  // While it is away an agent tries with one of its watches: each 5 to 10 s, after the first few.
  expect(attemptsPerSecond).toBeLessThan(AGENTS / 4);
  // Back after an outage they do not come in one second: watches, the lists that follow, and those that were refused.
  expect(outage.counts.mostInASecond).toBeLessThan(ALL / 4);
});

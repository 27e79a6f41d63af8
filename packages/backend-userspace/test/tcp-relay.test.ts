import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { type Clock, systemClock } from "@fairlead/base";
import { until } from "@fairlead/base/testing";
import { testSignal } from "@fairlead/tooling/test-signal";
import { expect, test } from "vitest";
import { createTraffic } from "../src/index.ts";
import { DIAL_TIMEOUTS } from "../src/relay/balancer.ts";
import { Opened, refuser, relayed } from "./support/servers.ts";

const greet = (name: string) => (socket: Socket) => void socket.end(name);

test("every byte arrives in both directions, and one side's end leaves the other open", async () => {
  await using opened = new Opened();
  const echo = await opened.tcp((socket) => {
    const hash = createHash("sha256");
    socket.on("data", (data) => hash.update(data));
    // The answer begins when the request has ended: the relay must pass on that end and nothing more.
    socket.on("end", () => socket.end(hash.digest("hex")));
  });
  const { relay, traffic } = await relayed(opened, "TCP", [echo]);
  const data = randomBytes(16 << 20);
  const client = await opened.client(relay.port);
  const answer = text(client);
  await pipeline([data], client);
  expect(await answer).toBe(createHash("sha256").update(data).digest("hex"));
  expect(traffic.counts).toMatchObject({
    accepted: { TCP: 1 },
    bytes: { "to-endpoint": data.length, "to-client": 64 },
    sockets: 1,
  });
});

test("200 at once, none is lost", async () => {
  await using opened = new Opened();
  const echo = await opened.tcp((socket) => void socket.pipe(socket));
  const { relay, traffic } = await relayed(opened, "TCP", [echo]);
  const answers = Array.from({ length: 200 }, async (_, index) => {
    const client = await opened.client(relay.port);
    client.end(`request ${index}`);
    return text(client);
  });
  expect(await Promise.all(answers)).toEqual(Array.from({ length: 200 }, (_, index) => `request ${index}`));
  expect(traffic.counts.accepted.TCP).toBe(200);
});

test("an endpoint that cannot be connected is passed over for the next", async () => {
  await using opened = new Opened();
  const endpoints = [refuser(), await opened.tcp(greet("alive")), refuser()];
  const { relay, traffic } = await relayed(opened, "TCP", endpoints);
  for (let request = 0; request < 30; request++) expect(await text(await opened.client(relay.port))).toBe("alive");
  expect(traffic.counts.passedOver).toBeGreaterThan(0);
  expect(Object.values(traffic.counts.refused)).toEqual([0, 0, 0, 0, 0]);
});

test("an endpoint that was connected in time is taken, also where the relay itself was too busy to see it", async () => {
  await using opened = new Opened();
  const endpoints = [await opened.tcp(greet("one")), await opened.tcp(greet("other"))];
  // The timer is due at once, and holds up the event loop until the kernel has made the connection.
  const busy: Clock = {
    ...systemClock,
    after(delay, run) {
      if (delay !== DIAL_TIMEOUTS[0]) return systemClock.after(delay, run);
      const late = () => {
        while (!endpoints.some(({ port }) => isConnectedTo(port)));
        run();
      };
      return systemClock.after(0, late);
    },
  };
  const { relay, traffic } = await relayed(opened, "TCP", endpoints, { clock: busy });
  for (let request = 0; request < 5; request++) await text(await opened.client(relay.port));
  expect(traffic.counts.passedOver).toBe(0);
});

/** Whether the kernel has a connection to a local port that is open in both directions; the event loop goes without. */
function isConnectedTo(port: number): boolean {
  const remote = `:${port.toString(16).toUpperCase().padStart(4, "0")} 01 `;
  return readFileSync("/proc/self/net/tcp", "latin1").includes(remote);
}

test("after four tries the client gets a reset", async () => {
  await using opened = new Opened();
  const dead = Array.from({ length: 6 }, refuser);
  const { relay, traffic } = await relayed(opened, "TCP", dead);
  expect(await endOf(opened.attempt(relay.port))).toBe("ECONNRESET");
  expect(traffic.counts).toMatchObject({ passedOver: 4, refused: { unreachable: 1 }, sockets: 1 });
});

test("without endpoints the client gets a reset", async () => {
  await using opened = new Opened();
  const { relay, traffic } = await relayed(opened, "TCP", []);
  expect(await endOf(opened.attempt(relay.port))).toBe("ECONNRESET");
  expect(traffic.counts.refused["no-endpoint"]).toBe(1);
});

test("what breaks off breaks off on the other side", async () => {
  await using opened = new Opened();
  const breaking = await opened.tcp((socket) => void socket.once("data", () => socket.resetAndDestroy()));
  const { relay, traffic } = await relayed(opened, "TCP", [breaking]);
  const client = await opened.client(relay.port);
  client.write("go");
  expect(await endOf(client)).toBe("ECONNRESET");

  const arrived = Promise.withResolvers<Socket>();
  const holding = await opened.tcp((socket) => arrived.resolve(socket));
  const other = await relayed(opened, "TCP", [holding], { traffic });
  const leaving = await opened.client(other.relay.port);
  leaving.write("go");
  const held = await arrived.promise;
  leaving.resetAndDestroy();
  expect(await endOf(held)).toBe("ECONNRESET");
});

test("the bound of a service and of all together", async () => {
  await using opened = new Opened();
  const holding = await opened.tcp((socket) => void socket.write("here"));
  // Two sockets for each connection.
  const bound = await relayed(opened, "TCP", [holding], { maxSocketsPerService: 5 });
  const first = [await opened.client(bound.relay.port), await opened.client(bound.relay.port)];
  for (const client of first) await once(client, "data");
  expect(await endOf(opened.attempt(bound.relay.port))).toBe("ECONNRESET");
  expect(bound.traffic.counts.refused).toMatchObject({ "service-limit": 1, "total-limit": 0 });
  first[0]?.resetAndDestroy();

  const traffic = createTraffic({ maxSockets: 3 });
  const all = await relayed(opened, "TCP", [holding], { traffic });
  await once(await opened.client(all.relay.port), "data");
  expect(await endOf(opened.attempt(all.relay.port))).toBe("ECONNRESET");
  expect(traffic.counts.refused).toMatchObject({ "service-limit": 0, "total-limit": 1 });
});

test("a connection without a byte for the idle time is ended", async () => {
  await using opened = new Opened();
  const silent = await opened.tcp(() => {});
  const { relay, traffic } = await relayed(opened, "TCP", [silent], { tcpIdleTimeout: 20 });
  expect(await endOf(opened.attempt(relay.port))).toBe("ECONNRESET");
  expect(traffic.counts.idled).toBe(1);
});

test("a client stays with its endpoint where the service asks for that", async () => {
  await using opened = new Opened();
  const endpoints = [await opened.tcp(greet("a")), await opened.tcp(greet("b")), await opened.tcp(greet("c"))];
  const { relay } = await relayed(opened, "TCP", endpoints, { affinitySeconds: 60 });
  const answers = [];
  for (let request = 0; request < 6; request++) answers.push(await text(await opened.client(relay.port)));
  expect(new Set(answers).size).toBe(1);
});

test("affinity holds no client at an endpoint that cannot be connected", async () => {
  await using opened = new Opened();
  const endpoints = [refuser(), await opened.tcp(greet("alive"))];
  const { relay } = await relayed(opened, "TCP", endpoints, { affinitySeconds: 60 });
  for (let request = 0; request < 3; request++) expect(await text(await opened.client(relay.port))).toBe("alive");
});

test("closing refuses new clients and ends no connection", async () => {
  await using opened = new Opened();
  const echo = await opened.tcp((socket) => void socket.pipe(socket));
  const { relay, traffic } = await relayed(opened, "TCP", [echo]);
  const client = await opened.client(relay.port);
  client.write("before");
  await once(client, "data");
  relay.close();
  await expect(opened.client(relay.port)).rejects.toThrow("ECONNREFUSED");
  client.end("after");
  expect(await text(client)).toBe("after");
  expect(traffic.idle).toBe(true);
});

test("ending closes both sides, and resets a side that does not answer", async () => {
  await using opened = new Opened();
  const arrived = Promise.withResolvers<Socket>();
  const stubborn = await opened.tcp((socket) => {
    socket.write("here");
    socket.resume();
    arrived.resolve(socket);
  });
  const { relay, traffic } = await relayed(opened, "TCP", [stubborn]);
  const client = await opened.client(relay.port);
  await once(client, "data");
  const held = await arrived.promise;
  const patience = Promise.withResolvers<void>();
  const ended = traffic.end(patience.promise);
  await Promise.all([once(client.resume(), "end"), once(held, "end")]);
  patience.resolve();
  await ended;
  expect(client.readableEnded).toBe(true);
  await until(testSignal(), () => traffic.idle);
});

/** How a socket ends: `end`, or the code of its error. */
function endOf(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket.once("end", () => resolve("end"));
    socket.resume();
  });
}

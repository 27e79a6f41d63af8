import { parseServerCommand, type VirtualServerKey } from "@fairlead/netfilter";
import { type SlotState, webState } from "@fairlead/testkit/histories";
import { describe, expect, test } from "vitest";
import { weights } from "./support/fake-node.ts";
import { live } from "./support/world.ts";

const KEY = "-t 10.96.3.1:80";
const SERVER: VirtualServerKey = { family: "IPv4", protocol: "TCP", address: "10.96.3.1", port: 80 };
const FIRST = { address: "10.144.0.4", port: 8080 };
const MINUTE = 60_000;

const both = webState({ endpoints: ["ready", "ready", "none", "none"] });
const second = webState({ endpoints: ["none", "ready", "none", "none"] });

/** Two endpoints, of which the first has a long connection. */
async function connected(state: Partial<SlotState> = {}) {
  const made = await live([[[1, { ...both, ...state }]]]);
  made.node.servers.connect(SERVER, FIRST, 1);
  return made;
}

describe("a TCP endpoint that goes", () => {
  test("gets no new connections and stays while a client is connected, however long", async () => {
    const made = await connected();
    await made.change([[1, second]]);
    expect(weights(made.node).get(KEY)).toEqual(["10.144.0.4:8080 0", "10.144.0.5:8080 1"]);
    await made.wait(100 * MINUTE);
    expect(weights(made.node).get(KEY)).toEqual(["10.144.0.4:8080 0", "10.144.0.5:8080 1"]);
    made.node.servers.connect(SERVER, FIRST, 0, 3);
    await made.wait(MINUTE);
    expect(weights(made.node).get(KEY)).toEqual(["10.144.0.4:8080 0", "10.144.0.5:8080 1"]);
    made.node.servers.connect(SERVER, FIRST, 0);
    await made.wait(MINUTE);
    expect(weights(made.node).get(KEY)).toEqual(["10.144.0.5:8080 1"]);
  });

  test("is looked at once a minute, and nothing is started while nothing drains", async () => {
    const made = await connected();
    await made.change([[1, second]]);
    await made.wait(MINUTE);
    const looks = await made.node.calls(() => made.wait(10 * MINUTE));
    expect(looks).toEqual(Array.from({ length: 10 }, () => "netlink ipvs list"));
    made.node.servers.connect(SERVER, FIRST, 0);
    await made.wait(MINUTE);
    expect(await made.backend.maintain()).toBeUndefined();
    expect(await made.node.processes(() => made.wait(10 * MINUTE))).toEqual([]);
  });

  test("goes within seconds where no client was connected", async () => {
    const made = await live([[[1, both]], [[1, second]]]);
    await made.wait(2_000);
    expect(weights(made.node).get(KEY)).toEqual(["10.144.0.5:8080 1"]);
  });

  test("is taken back when it returns", async () => {
    const made = await connected();
    await made.change([[1, second]]);
    await made.change([[1, both]]);
    expect(weights(made.node).get(KEY)).toEqual(["10.144.0.4:8080 1", "10.144.0.5:8080 1"]);
    expect(await made.backend.maintain()).toBeUndefined();
    made.node.servers.connect(SERVER, FIRST, 0);
    await made.wait(2 * MINUTE);
    expect(weights(made.node).get(KEY)).toEqual(["10.144.0.4:8080 1", "10.144.0.5:8080 1"]);
  });

  test("drains on after a restart, and after a fault", async () => {
    const made = await connected();
    await made.change([[1, second]]);
    await made.restart();
    expect(weights(made.node).get(KEY)).toEqual(["10.144.0.4:8080 0", "10.144.0.5:8080 1"]);
    await made.sync();
    await made.wait(2 * MINUTE);
    expect(weights(made.node).get(KEY)).toEqual(["10.144.0.4:8080 0", "10.144.0.5:8080 1"]);
    made.node.servers.connect(SERVER, FIRST, 0);
    await made.wait(MINUTE);
    expect(weights(made.node).get(KEY)).toEqual(["10.144.0.5:8080 1"]);
  });

  test("is taken back by another process that finds it draining", async () => {
    const made = await connected();
    await made.change([[1, second]]);
    made.world.change([[1, both]]);
    await made.restart();
    expect(weights(made.node).get(KEY)).toEqual(["10.144.0.4:8080 1", "10.144.0.5:8080 1"]);
  });

  test("goes with its server", async () => {
    const made = await connected();
    await made.change([[1, second]]);
    await made.change([[1, undefined]]);
    expect(made.node.servers.servers()).toEqual([]);
    expect(await made.backend.maintain()).toBeUndefined();
  });

  test("is no difference to what has to be there", async () => {
    const made = await connected();
    await made.change([[1, second]]);
    expect(await made.backend.difference(made.world.plan)).toBeUndefined();
    made.node.servers.meddle(command("-e -t 10.96.3.1:80 -r 10.144.0.4:8080 -m -w 1"));
    expect(await made.backend.difference(made.world.plan)).toBeDefined();
  });

  test("drains at every address of its service", async () => {
    const made = await connected({ type: "LoadBalancer" });
    await made.change([[1, { ...second, type: "LoadBalancer" }]]);
    const draining = [...weights(made.node)].filter(([, all]) => all.includes("10.144.0.4:8080 0"));
    expect(draining.map(([key]) => key).sort()).toEqual([
      "-t 10.201.0.10:30002",
      "-t 10.96.3.1:80",
      "-t 203.0.113.1:80",
    ]);
  });
});

test("a UDP endpoint goes at once", async () => {
  const made = await live([[[1, { ...both, protocol: "UDP" }]], [[1, { ...second, protocol: "UDP" }]]]);
  expect(weights(made.node).get("-u 10.96.3.1:80")).toEqual(["10.144.0.5:8080 1"]);
  expect(await made.backend.maintain()).toBeUndefined();
});

test("a failed listing is reported, and the next sync goes on", async () => {
  const made = await connected();
  await made.change([[1, second]]);
  made.now += MINUTE;
  made.node.faults.failNext();
  await expect(made.backend.maintain()).rejects.toThrow("netlink ipvs list");
  await made.sync();
  made.node.servers.connect(SERVER, FIRST, 0);
  await made.wait(2 * MINUTE);
  expect(weights(made.node).get(KEY)).toEqual(["10.144.0.5:8080 1"]);
});

function command(line: string) {
  const parsed = parseServerCommand(line);
  if (parsed === undefined) throw new Error(line);
  return parsed;
}

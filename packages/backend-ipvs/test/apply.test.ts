import type { VirtualServerKey } from "@fairlead/netfilter";
import { noChange, type SlotState, webState } from "@fairlead/testkit/histories";
import { describe, expect, test, vi } from "vitest";
import { weights } from "./support/fake-node.ts";
import { expectShortTurns } from "./support/large-group.ts";
import { live, openWorld } from "./support/world.ts";

const some = (count: number) => Array.from({ length: count }, (_, slot) => [slot + 10, webState()] as const);

describe.each([2, 150])("among %d services", (count) => {
  test("one endpoint more, elsewhere: no process", async () => {
    const made = await live([[...some(count), [1, webState({ endpoints: ["ready", "none", "none", "none"] })]]]);
    const processes = await made.node.processes(() =>
      made.change([[1, webState({ endpoints: ["ready", "none", "ready", "none"] })]]),
    );
    expect(processes).toEqual([]);
    expect(weights(made.node).get("-t 10.96.3.1:80")).toEqual(["10.144.0.4:8080 1", "10.144.128.6:8080 1"]);
  });

  test("one endpoint more, on this node: the set first", async () => {
    const made = await live([[...some(count), [1, webState()]]]);
    const calls = await made.node.calls(() =>
      made.change([[1, webState({ endpoints: ["ready", "ready", "none", "none"] })]]),
    );
    expect(calls).toEqual(["netlink ipset", "netlink ipvs restore", "netlink ipvs list"]);
  });

  test("one endpoint fewer, on this node: the set last", async () => {
    const made = await live([[...some(count), [1, webState({ endpoints: ["ready", "ready", "none", "none"] })]]]);
    const calls = await made.node.calls(() => made.change([[1, webState()]]));
    expect(calls).toEqual(["netlink ipvs restore", "netlink ipset", "netlink ipvs list"]);
  });

  test("the first endpoint on this node, and the last one: one process, for its rule", async () => {
    const elsewhere = webState({ endpoints: ["none", "none", "ready", "none"] });
    const here = webState({ endpoints: ["ready", "none", "ready", "none"] });
    const others = Array.from({ length: count }, (_, slot) => [slot + 10, elsewhere] as const);
    const made = await live([[...others, [1, elsewhere]]]);
    const first = await made.node.processes(() => made.change([[1, here]]));
    expect(first).toEqual(["iptables-legacy-restore --noflush --counters"]);
    const last = await made.node.processes(() => made.change([[1, elsewhere]]));
    expect(last).toEqual(["iptables-legacy-restore --noflush --counters"]);
  });

  test("a new service: sets, addresses, servers", async () => {
    const made = await live([some(count)]);
    expect(await made.node.calls(() => made.change([[1, webState()]]))).toEqual([
      "netlink ipset",
      "netlink ip",
      "netlink ipvs restore",
      "netlink ipvs list",
    ]);
  });

  test("a service that goes: servers, addresses, sets", async () => {
    const made = await live([[...some(count), [1, webState()]]]);
    expect(await made.node.calls(() => made.change([[1, undefined]]))).toEqual([
      "netlink ipvs restore",
      "netlink ip",
      "netlink ipset",
      "netlink ipvs list",
    ]);
  });
});

test("the first service that needs a set's rules: they are there before the server", async () => {
  const made = await live([some(2)]);
  const calls = await made.node.calls(() => made.change([[1, webState({ type: "NodePort" })]]));
  expect(calls).toEqual([
    "netlink ipset",
    "iptables-legacy-restore --noflush --counters",
    "netlink ip",
    "netlink ipvs restore",
    "netlink ipvs list",
  ]);
});

test("a change that touches nothing in the kernel starts no process", async () => {
  const made = await live([[[1, webState()]]]);
  expect(await made.node.processes(() => made.backend.apply(made.world.plan, noChange))).toEqual([]);
});

test("without services nothing can be ours: other people's virtual servers are not listed", async () => {
  const made = await live([[]]);
  const calls = await made.node.calls(async () => {
    await made.backend.sync(made.world.plan);
    expect(await made.backend.difference(made.world.plan)).toBeUndefined();
  });
  expect(calls.filter((call) => call.startsWith("netlink ipvs"))).toEqual([]);
  await made.change([[1, webState()]]);
  await made.backend.sync(made.world.plan);
  expect(await made.node.calls(() => made.backend.difference(made.world.plan))).toContain("netlink ipvs save");
});

test.each([
  ["a service that comes", [[2, webState()]], "virtual server -t 10.96.3.2:80: .* but it does not exist"],
  ["one that goes", [[1, undefined]], "virtual server -t 10.96.3.1:80: .* but it still exists"],
  [
    "an endpoint that comes",
    [[1, webState({ endpoints: ["ready", "ready", "ready", "none"] })]],
    "virtual server -t 10.96.3.1:80: .* but it lacks the destination 10.144.",
  ],
] as const)("virtual servers: %s, and was not written, is an error at once", async (_, change, error) => {
  const made = await live([[[1, webState({ endpoints: ["ready", "none", "none", "none"] })]]]);
  const lying = vi.spyOn(made.node.servers, "change").mockResolvedValue();
  await expect(made.change(change)).rejects.toThrow(new RegExp(error));
  lying.mockRestore();
  await made.sync();
  expect(await made.differences()).toEqual([]);
});

test("rules that a new kind of service needs: the next check finds that they are missing", async () => {
  const made = await live([[[1, webState()]]]);
  made.node.rules.IPv4.lies = true;
  await made.change([[2, webState({ type: "NodePort" })]]);
  made.node.rules.IPv4.lies = false;
  expect(await made.backend.difference(made.world.plan)).toBeDefined();
  await made.sync();
  expect(await made.differences()).toEqual([]);
});

test("a service with very many endpoints is compared and written in short turns, and so it drains", () =>
  expectShortTurns(30_000));

const KEY = "-t 10.96.3.1:80";
const SERVER: VirtualServerKey = { family: "IPv4", protocol: "TCP", address: "10.96.3.1", port: 80 };
const FIRST = { address: "10.144.0.4", port: 8080 };
const OWN = "10.144.0.4:8080";
const OTHER = "10.144.0.5:8080";

const resetting = { resetStaleTCP: true } as const;
const of = (first: SlotState["endpoints"][number], second: SlotState["endpoints"][number]) =>
  webState({ endpoints: [first, second, "none", "none"] });

/** Two endpoints, of which the first has a connection. */
async function connected(options: Parameters<typeof openWorld>[0] = resetting) {
  const made = await live([[[1, of("ready", "ready")]]], { world: openWorld(options) });
  made.node.servers.connect(SERVER, FIRST, 1);
  return made;
}

test("a destination whose endpoint is gone goes at once, though a client is connected", async () => {
  const made = await connected();
  await made.change([[1, of("none", "ready")]]);
  expect(weights(made.node).get(KEY)).toEqual([`${OTHER} 1`]);
  expect(await made.backend.maintain()).toBeUndefined();
  expect(await made.backend.difference(made.world.plan)).toBeUndefined();
});

test("so does the last one", async () => {
  const made = await connected();
  await made.change([[1, of("none", "none")]]);
  expect(weights(made.node).get(KEY)).toEqual([]);
});

test("one that terminates drains while it is there, and goes when it is not", async () => {
  const made = await connected();
  await made.change([[1, of("terminating", "ready")]]);
  expect(weights(made.node).get(KEY)).toEqual([`${OWN} 0`, `${OTHER} 1`]);
  await made.restart();
  expect(weights(made.node).get(KEY)).toEqual([`${OWN} 0`, `${OTHER} 1`]);
  await made.change([[1, of("none", "ready")]]);
  expect(weights(made.node).get(KEY)).toEqual([`${OTHER} 1`]);
});

test("one that went while no agent ran goes with the start of the next", async () => {
  const made = await connected();
  made.world.change([[1, of("none", "ready")]]);
  await made.restart();
  expect(weights(made.node).get(KEY)).toEqual([`${OTHER} 1`]);
});

test("unless it is asked for, it drains", async () => {
  const made = await connected({});
  await made.change([[1, of("none", "ready")]]);
  expect(weights(made.node).get(KEY)).toEqual([`${OWN} 0`, `${OTHER} 1`]);
});

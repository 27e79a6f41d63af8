import { VirtualClock } from "@fairlead/base/testing";
import { goldenNode, goldenPlannerOptions } from "@fairlead/testkit";
import { noChange, type SlotState, slotHistory, World, webState } from "@fairlead/testkit/histories";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FakeSockets } from "../src/fake/index.ts";
import { createNodePortRelays, createTraffic, userspaceSemantics } from "../src/index.ts";

const nodePort = (more: Partial<SlotState> = {}) => webState({ type: "NodePort", ...more });
/** Of the four endpoints the last two run elsewhere. */
const ELSEWHERE = ["none", "none", "ready", "none"] as const;

function opened(sockets = new FakeSockets()) {
  const clock = new VirtualClock();
  const problems: string[] = [];
  const traffic = createTraffic();
  const onProblem = (problem: string) => void problems.push(problem);
  const relays = createNodePortRelays("IPv4", { open: sockets.open, onProblem, clock, traffic });
  const world = new World(goldenPlannerOptions(goldenNode(false), userspaceSemantics));
  const change = async (...slots: (readonly [number, SlotState | undefined])[]) =>
    relays.apply(world.change(slots) ?? noChange);
  return { relays, sockets, world, change, problems, clock, traffic };
}

describe("what listens", () => {
  test("TCP node ports with endpoints, on 127.0.0.1 and the port itself", async () => {
    const { change, sockets, relays } = opened();
    await change([1, nodePort()], [2, nodePort({ protocol: "UDP" })], [3, webState()]);
    expect(sockets.listening).toEqual(["127.0.0.1:30002 tcp"]);
    expect(relays.listeners).toBe(1);
    await change([1, nodePort({ endpoints: ["none", "none", "none", "none"] })]);
    expect(sockets.listening).toEqual([]);
    await change([1, nodePort({ ports: 2 })]);
    expect(sockets.listening).toEqual(["127.0.0.1:30002 tcp", "127.0.0.1:30003 tcp"]);
    await change([1, undefined]);
    expect(sockets.listening).toEqual([]);
  });

  test("IPv6 has ::1", async () => {
    const sockets = new FakeSockets();
    const { world } = opened();
    world.change([[1, nodePort()]]);
    const relays = createNodePortRelays("IPv6", { open: sockets.open });
    await relays.sync(world.plan);
    expect(sockets.listening).toEqual(["[::1]:30002 tcp"]);
  });

  test("under external policy Local only endpoints of this node, as upstream; the relay changes its set in place", async () => {
    const { change, sockets } = opened();
    await change([1, nodePort({ endpoints: ELSEWHERE })]);
    const cluster = sockets.ask("TCP", "127.0.0.1:30002", "127.0.0.1");
    expect(cluster?.local).toBe(false);
    await change([1, nodePort({ external: "Local", endpoints: ELSEWHERE })]);
    expect(sockets.listening).toEqual([]);
    await change([1, nodePort({ endpoints: ["ready", "none", "ready", "none"] })]);
    await change([1, nodePort({ external: "Local", endpoints: ["ready", "none", "ready", "none"] })]);
    const chosen = Array.from({ length: 4 }, () => sockets.ask("TCP", "127.0.0.1:30002", "127.0.0.1")?.local);
    expect(chosen).toEqual([true, true, true, true]);
  });

  test("none where source ranges do not let the node's programs in", async () => {
    const { change, sockets } = opened();
    await change([1, nodePort()]);
    await change([1, nodePort({ nodePortRanges: true })]);
    expect(sockets.listening).toEqual([]);
  });

  test("a client with affinity keeps its endpoint", async () => {
    const { change, sockets } = opened();
    await change([1, nodePort({ affinity: true, endpoints: ["ready", "ready", "ready", "ready"] })]);
    const chosen = Array.from({ length: 8 }, () => sockets.ask("TCP", "127.0.0.1:30002", "127.0.0.1")?.address);
    expect(new Set(chosen).size).toBe(1);
  });

  test("after close nothing does", async () => {
    const { change, sockets, relays } = opened();
    await change([1, nodePort()]);
    relays.close();
    expect(sockets.listening).toEqual([]);
    expect(relays.listeners).toBe(0);
  });
});

test("a port that another program has costs that port only, is reported once, and is tried again", async () => {
  const { change, relays, sockets, problems, clock } = opened();
  sockets.taken.add("127.0.0.1:30002 tcp");
  await change([1, nodePort()], [2, nodePort()]);
  expect(sockets.listening).toEqual(["127.0.0.1:30004 tcp"]);
  expect(problems).toEqual([expect.stringMatching(/^default\/slot-1:main: .*EADDRINUSE.*127\.0\.0\.1:30002/)]);
  expect(relays.failures).toBe(1);
  expect(await relays.retry()).toBe(30_000);
  await clock.advance(30_000);
  expect(await relays.retry()).toBe(30_000);
  expect([relays.failures, problems.length]).toEqual([2, 1]);
  sockets.taken.clear();
  await clock.advance(30_000);
  expect(await relays.retry()).toBeUndefined();
  expect(sockets.listening).toEqual(["127.0.0.1:30002 tcp", "127.0.0.1:30004 tcp"]);
});

test("the event loop gets its turn while many sockets open: listening on an address waits for nothing", async () => {
  const turns: number[] = [];
  const world = new World(goldenPlannerOptions(goldenNode(false), userspaceSemantics));
  world.change(Array.from({ length: 200 }, (_, slot) => [slot + 1, nodePort()] as const));
  const sockets = new FakeSockets();
  const turn = async () => void turns.push(sockets.listening.length);
  await createNodePortRelays("IPv4", { open: sockets.open, turn }).sync(world.plan);
  expect(sockets.listening).toHaveLength(200);
  const opened = [0, ...turns, 200].map((count, at, all) => count - (all[at - 1] ?? 0));
  expect(Math.max(...opened)).toBeLessThanOrEqual(32);
});

test("a service without endpoints is not tried again", async () => {
  const { change, relays, sockets } = opened();
  sockets.taken.add("127.0.0.1:30002 tcp");
  await change([1, nodePort()]);
  await change([1, nodePort({ endpoints: ["none", "none", "none", "none"] })]);
  expect(await relays.retry()).toBeUndefined();
});

test("whatever the history, the sockets are those of a fresh start, and no budget leaks", async () => {
  await fc.assert(
    fc.asyncProperty(slotHistory, async (history) => {
      const made = opened();
      for (const step of history) await made.change(...step);
      const fresh = opened();
      await fresh.relays.sync(made.world.plan);
      expect(made.sockets.listening).toEqual(fresh.sockets.listening);
      await made.relays.sync(made.world.plan);
      expect(made.sockets.listening).toEqual(fresh.sockets.listening);
      expect(made.traffic.counts.sockets).toBe(made.relays.listeners);
      made.relays.close();
      expect(made.traffic.counts.sockets).toBe(0);
    }),
    { numRuns: 100 },
  );
});

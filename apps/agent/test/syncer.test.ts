import { VirtualClock } from "@fairlead/base/testing";
import {
  ClusterState,
  type Difference,
  decodeEndpointSlice,
  decodeService,
  Planner,
  type PlannerOptions,
  type ServiceKey,
} from "@fairlead/core";
import { endpointSlice, type RawObject, service } from "@fairlead/testkit";
import { expect, test } from "vitest";
import { Differences, Syncer } from "../src/sync/syncer.ts";
import { recordedLog } from "./support/fake-node.ts";
import { type RunningAgent, runningAgent } from "./support/running-agent.ts";

const OPTIONS: PlannerOptions = {
  nodeName: "node-a",
  families: ["IPv4"],
  nodeIPs: {},
  detectors: {},
  nodePortAddresses: {},
  masqueradeAll: false,
  semantics: { localSourcesShortCut: true, localWithoutEndpoints: "drop", withoutEndpoints: "reject" },
};

/** A syncer whose memory, and with it planning, can be made to throw; it has no kernel. */
function syncing() {
  const state = new ClusterState();
  const failing = { now: false };
  const seen: ReadonlySet<ServiceKey>[] = [];
  const times: (readonly number[] | undefined)[] = [];
  const memory = () => {
    if (failing.now) throw new Error("planning threw");
    return { get: () => undefined };
  };
  const syncer = new Syncer({
    planner: new Planner(OPTIONS),
    state,
    memory,
    families: [],
    familiesAtOnce: true,
    options: () => OPTIONS,
    slicing: { clock: { monotonic: () => 0 }, budget: 10, turn: async () => {} },
    followers: [
      {
        planned(_step, { services, triggerTimes }) {
          seen.push(services);
          times.push(triggerTimes.get("default/web"));
        },
      },
    ],
    log: recordedLog(),
  });
  const move = (name: string, address: string) => {
    const fields = { service: name, family: "IPv4", ports: [{ port: 80 }], endpoints: [{ address }] } as const;
    const { metadata, ...slice } = endpointSlice(`${name}-1`, fields);
    const annotations = { "endpoints.kubernetes.io/last-change-trigger-time": "2030-01-01T00:00:00Z" };
    const { object } = decodeEndpointSlice({ ...slice, metadata: { ...metadata, annotations } });
    if (object !== undefined) state.upsertSlice(object);
  };
  for (const name of ["web", "api"]) {
    const { object } = decodeService(service(name, { clusterIPs: ["10.96.0.10"], ports: [{ port: 80 }] }));
    if (object !== undefined) state.upsertService(object);
  }
  return { syncer, failing, seen, times, move };
}

test("what changed before a planning that failed is reported with the next one that does not", async () => {
  const { syncer, failing, seen, times, move } = syncing();
  await syncer.sync("partial");
  move("web", "10.144.0.5");
  failing.now = true;
  await syncer.sync("partial");
  move("web", "10.144.0.6");
  await syncer.sync("partial");
  move("api", "10.144.0.7");
  failing.now = false;
  await syncer.sync("partial");
  await syncer.sync("partial");
  expect(seen.slice(1)).toEqual([new Set(["default/web", "default/api"]), new Set()]);
  expect(times[1]).toHaveLength(2);
});

const HOUR_MS = 3_600_000;
const web = service("web", {
  clusterIPs: ["10.96.67.75"],
  ports: [{ port: 80 }],
  affinitySeconds: 600,
});

/** Its endpoints changed at that moment, as the API server's clock has it. */
function slice(changedAt: number, ...addresses: readonly string[]): RawObject {
  const endpoints = addresses.map((address) => ({ address }));
  const one = endpointSlice("web-1", { service: "web", family: "IPv4", ports: [{ port: 80 }], endpoints });
  const annotations = { "endpoints.kubernetes.io/last-change-trigger-time": new Date(changedAt).toISOString() };
  return { ...one, metadata: { ...one.metadata, annotations } };
}

/** What an agent does in an hour of changes and checks; before each of them its wall clock is set by so much. */
async function hourOf(mode: string, steps: readonly number[]) {
  const one = await runningAgent({ mode, flags: ["--cluster-cidr=10.144.0.0/16"] });
  const began = one.clock.now();
  await one.serve(web, slice(began, "10.144.0.1"));
  for (const [at, by] of steps.entries()) {
    one.clock.step(by);
    await one.source.put(slice(began + one.clock.monotonic(), "10.144.0.1", `10.144.0.${at + 2}`));
    await one.clock.advance(HOUR_MS / steps.length);
  }
  const metrics = await one.metrics();
  await one.stop();
  return { done: doneBy(one), metrics };
}

function doneBy({ log, faults, nat, filter, nftables }: RunningAgent) {
  // The memory's file is a real one, written in real time.
  const lines = log.lines.filter(({ message }) => !message.includes("ownership memory"));
  return {
    lines: lines.map(({ level, message }) => `${level} ${message}`),
    calls: faults.IPv4.calls,
    nat: nat(),
    filter: filter(),
    table: nftables.tableNow("ip", "kube-proxy"),
  };
}

test.each(["iptables", "ipvs", "nftables", "userspace"])(
  "%s mode: an agent whose clock is set by an hour, forth and back, does what it does without that",
  async (mode) => {
    const [still, stepped] = [
      await hourOf(mode, [0, 0, 0, 0]),
      await hourOf(mode, [HOUR_MS, -2 * HOUR_MS, HOUR_MS / 2, -HOUR_MS]),
    ];
    expect(stepped.done).toEqual(still.done);
    for (const line of stepped.metrics.split("\n")) expect(line).not.toMatch(/ -\d/);
  },
);

const CHANGED: Difference = { what: ["chain KUBE-SERVICES"], by: ["nft (4711)"], repaired: false };
/** No other program is known to have changed the rules. */
const FLUSHED: Difference = { what: ["chain KUBE-SERVICES"], repaired: false };

function made() {
  const clock = new VirtualClock();
  const log = recordedLog();
  return { clock, log, differences: new Differences(clock, log) };
}

test("what differs is written again each time that it was right in between, and is logged every ten seconds", async () => {
  const { clock, log, differences } = made();
  for (let time = 0; time < 100; time++) {
    expect(differences.found("IPv4", CHANGED)).toBe(true);
    differences.none("IPv4");
    await clock.advance(100);
  }
  expect(log.lines).toMatchObject([
    { level: "warn", fields: { ipFamily: "IPv4", differs: "chain KUBE-SERVICES", by: "nft (4711)" } },
  ]);
  await clock.advance(10_000);
  differences.found("IPv4", FLUSHED);
  expect(log.lines).toHaveLength(2);
});

test("what another program changes again before it was found right is written at once", () => {
  const { differences, log } = made();
  for (let time = 0; time < 3; time++) expect(differences.found("IPv4", CHANGED)).toBe(true);
  expect(differences.found("IPv4", FLUSHED)).toBe(false);
  expect(log.lines.filter(({ level }) => level === "error")).toHaveLength(1);
});

test("what still differs right after it was written is written again later and later", async () => {
  const { clock, log, differences } = made();
  const written: number[] = [];
  const hour = 3_600_000;
  for (; clock.monotonic() < 3 * hour; await clock.advance(30_000)) {
    if (!differences.found("IPv4", FLUSHED)) continue;
    written.push(clock.monotonic() / 60_000);
    expect(differences.found("IPv4", FLUSHED)).toBe(false);
  }
  expect(written).toEqual([0, 1, 3, 7, 15, 31, 63, 123]);
  expect(log.lines.filter(({ level }) => level === "error")).toHaveLength(written.length);
});

test("another difference is written at once, and the other family's is its own", () => {
  const { differences } = made();
  differences.found("IPv4", FLUSHED);
  expect(differences.found("IPv4", FLUSHED)).toBe(false);
  expect(differences.found("IPv6", FLUSHED)).toBe(true);
  expect(differences.found("IPv4", { ...FLUSHED, what: ["the table is missing"] })).toBe(true);
});

test("what a mode has put right itself asks for nothing, however often", () => {
  const { differences, log } = made();
  for (let time = 0; time < 3; time++) {
    expect(differences.found("IPv4", { ...FLUSHED, repaired: true })).toBe(false);
  }
  expect(log.lines).toHaveLength(1);
});

test("a line names five of what differs", () => {
  const { differences, log } = made();
  differences.found("IPv4", { what: Array.from({ length: 8 }, (_, at) => `chain ${at}`), repaired: false });
  expect(log.lines[0]?.fields).toEqual({
    ipFamily: "IPv4",
    differs: "chain 0; chain 1; chain 2; chain 3; chain 4; 3 more",
  });
});

import type { PlanEndpoint, ServicePortGroup } from "@fairlead/core";
import { FakeNftables } from "@fairlead/kernel/fake";
import { NftBatch } from "@fairlead/netfilter/nft";
import { type SlotState, webState } from "@fairlead/testkit/histories";
import { expect, test } from "vitest";
import { createNftablesBackend, planTable } from "../src/index.ts";
import { changeTable } from "../src/plan/change-table.ts";
import { DEFAULTS, planContext } from "../src/plan/context.ts";
import { TableInMemory, writeTable } from "../src/plan/write-table.ts";
import { described } from "./support/described.ts";
import { groupOfEveryKind, planOfEveryKind } from "./support/every-kind.ts";
import { openWorld, recorded } from "./support/world.ts";

const ENDPOINTS = 20_000;

test("a service of very many endpoints is written and changed in short steps", () => {
  const plan = planOfEveryKind("IPv4");
  const context = planContext({ ...DEFAULTS, family: "IPv4" }, plan);
  const written = stepsOf(writeTable([group(0)], context, new TableInMemory(context)));
  expect(written.steps).toBeGreaterThan((5 * ENDPOINTS) / 2048);
  const batch = new NftBatch("ip", "kube-proxy");
  const changed = stepsOf(changeTable(written.result, [["default/many/tcp", group(ENDPOINTS)]], context, batch));
  expect(changed.steps).toBeGreaterThan((5 * ENDPOINTS) / 2048);
  expect(changed.result.written.endpoints).toBeGreaterThan(ENDPOINTS);
});

function group(from: number): ServicePortGroup {
  const endpoints = Array.from({ length: ENDPOINTS }, (_, at): PlanEndpoint => {
    const number = from + at;
    return { address: `10.${144 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`, port: 8080, local: false };
  });
  return { ...groupOfEveryKind("IPv4", "many", 1, "TCP"), cluster: endpoints };
}

/** Runs to the end, and counts. */
function stepsOf<T>(generator: Generator<void, T>): { readonly steps: number; readonly result: T } {
  for (let steps = 0; ; steps++) {
    const next = generator.next();
    if (next.done === true) return { steps, result: next.value };
  }
}

/** Far from enough for the services of these tests, and enough for each single message. */
const ROOM = 64 * 1024;

test("a table for which there is no room at once goes in several transactions", async () => {
  const { fake, transactions, world } = await openNode();
  expect(transactions.length).toBeGreaterThan(3);
  const table = fake.tableNow("ip", "kube-proxy");
  expect(table && described(table)).toEqual(described(planTable(world.plan)));
});

test("whoever is refused in the end is not refused before the others are served", async () => {
  const { transactions } = await openNode();
  const order = transactions
    .flat()
    .filter(({ what }) => what === "element")
    .map(({ name }) => name);
  const last = (...names: readonly string[]) => Math.max(...names.map((name) => order.lastIndexOf(name)));
  const first = (...names: readonly string[]) =>
    Math.min(...names.map((name) => order.indexOf(name)).filter((at) => at >= 0));
  expect(last("firewall-ips")).toBeLessThan(first("service-ips"));
  expect(last("service-ips", "service-nodeports")).toBeLessThan(first("no-endpoint-services", "no-endpoint-nodeports"));
  expect(last("no-endpoint-services", "no-endpoint-nodeports")).toBeLessThan(first("cluster-ips"));
});

test("a change for which there is no room becomes a full sync", async () => {
  const { backend, fake, world } = await openNode();
  const change = world.change(services({ endpoints: ["none", "none", "ready", "ready"] }));
  if (change === undefined) throw new Error("nothing changed");
  expect((await backend.apply(world.plan, change)).kind).toBe("full");
  const table = fake.tableNow("ip", "kube-proxy");
  expect(table && described(table)).toEqual(described(planTable(world.plan)));
});

function services(state: Partial<SlotState>): readonly (readonly [number, SlotState])[] {
  const whole = { type: "LoadBalancer", ranges: true, externalIP: true, ...state } as const;
  const none = { ...whole, endpoints: ["none", "none", "none", "none"] } as const;
  return Array.from({ length: 250 }, (_, slot) => [slot, webState(slot % 10 === 0 ? none : whole)]);
}

async function openNode() {
  const fake = new FakeNftables({ room: ROOM });
  const { port, transactions } = recorded(fake);
  const world = openWorld();
  world.change(services({ endpoints: ["ready", "ready", "none", "none"] }));
  const backend = createNftablesBackend(port, { family: "IPv4" });
  await backend.sync(world.plan);
  return { fake, transactions, world, backend };
}

import { slices } from "@fairlead/base";
import type { PlanEndpoint } from "@fairlead/core";
import type { Destination, ServerCommand, VirtualServer } from "@fairlead/netfilter";
import { changeOf, clusterIPGroup, nodePlan, planOf } from "@fairlead/testkit/plans";
import { expect } from "vitest";
import { createIpvsBackend, type ServersPort } from "../../src/index.ts";
import { FakeNode } from "./fake-node.ts";

/** Reads of endpoints' addresses that one turn of the event loop may do: a few milliseconds. */
const MOST = 5_000;

/** One virtual server; what is read of it and of the plan's endpoints is counted, by turns of the event loop. */
function world() {
  let reads = 0;
  let most = 0;
  const turn = async () => {
    most = Math.max(most, reads);
    reads = 0;
  };
  const watched = <T extends { readonly address: string }>(one: T): T =>
    Object.defineProperty({ ...one }, "address", {
      enumerable: true,
      get: () => {
        reads++;
        return one.address;
      },
    });
  const held = new Map<string, { server: VirtualServer; destinations: Map<string, Destination> }>();
  const take = (command: ServerCommand) => {
    if (command.kind === "add-server") held.set("one", { server: command.server, destinations: new Map() });
    if (!("destination" in command)) return;
    const { destination } = command;
    if (command.kind === "delete-destination") held.get("one")?.destinations.delete(destination.address);
    else held.get("one")?.destinations.set(destination.address, watched(destination as Destination));
  };
  let now = 0;
  // 64 steps are a slice.
  const clock = { monotonic: () => (now += 10 / 64) };
  const servers: ServersPort = {
    async *save() {
      for (const { server, destinations } of held.values())
        yield { ...server, destinations: [...destinations.values()] };
    },
    async *connections() {
      for (const { server, destinations } of held.values()) {
        const counted = Array.from(destinations.values(), (one) => watched({ ...one, active: 0, inactive: 0 }));
        reads = 0;
        yield { ...server, destinations: counted };
      }
    },
    async change(commands, turn) {
      const yielding = slices({ clock, turn });
      for (const command of commands) {
        const before = reads;
        take(command);
        reads = before;
        const turned = yielding();
        if (turned !== undefined) await turned;
      }
    },
  };
  const backend = createIpvsBackend({ ...new FakeNode().port("IPv4"), servers }, { turn, clock });
  const longest = async (work: () => Promise<unknown>) => {
    [reads, most] = [0, 0];
    await work();
    await turn();
    return most;
  };
  const weightsOf = () => Map.groupBy(held.get("one")?.destinations.values() ?? [], ({ weight }) => weight);
  const wait = (milliseconds: number) => {
    now += milliseconds;
  };
  return { backend, longest, watched, weightsOf, wait };
}

/** Compares and writes a service with so many endpoints, and drains it; no turn may be long. */
export async function expectShortTurns(count: number): Promise<void> {
  const { backend, longest, watched, weightsOf, wait } = world();
  const endpoints = Array.from({ length: count }, (_, i) =>
    watched({ address: `10.${144 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}`, port: 8080, local: false }),
  );
  const node = nodePlan({ kind: "none" });
  const plan = (cluster: readonly PlanEndpoint[]) => planOf([clusterIPGroup("web", "10.96.0.10", cluster)], node);
  const [one, all] = [plan(endpoints.slice(0, 1)), plan(endpoints)];
  expect(await longest(() => backend.sync(one))).toBeLessThan(MOST);
  expect(await longest(() => backend.apply(all, changeOf(one, all)))).toBeLessThan(MOST);
  expect(weightsOf().get(1)).toHaveLength(count);
  expect(await longest(async () => expect(await backend.difference(all)).toBeUndefined())).toBeLessThan(MOST);
  expect(await longest(() => backend.apply(one, changeOf(all, one)))).toBeLessThan(MOST);
  expect(weightsOf().get(0)).toHaveLength(count - 1);
  wait(3_600_000);
  expect(await longest(() => backend.maintain())).toBeLessThan(MOST);
  expect(weightsOf().get(1)).toHaveLength(1);
  expect(weightsOf().get(0)).toBeUndefined();
  expect(await longest(() => backend.sync(all))).toBeLessThan(MOST);
  expect(weightsOf().get(1)).toHaveLength(count);
}

import type { PlanEndpoint } from "@fairlead/core";
import type { TableState } from "@fairlead/netfilter";
import { expect, test } from "vitest";
import { createIptablesBackend, type RulesPort } from "../src/index.ts";
import { group, HandMadePlan } from "./support/hand-made-plan.ts";

const ENDPOINTS = 15_000;
/** Reads of endpoints' addresses that one turn of the event loop may do: a few milliseconds. */
const MOST = 10_000;

/** Takes payloads in and keeps nothing of them. */
function sink(variant: RulesPort["variant"]): RulesPort {
  return {
    family: "IPv4",
    variant,
    async restore(payload) {
      for await (const piece of payload) expect(piece.length).toBeLessThan(200_000);
    },
    save: async (table): Promise<TableState> => ({ table, chains: new Map() }),
    async *saveLines() {},
    chains: async () => new Set<string>(),
    list: async () => [],
    texts: async () => new Map(),
  };
}

/** One group whose endpoints count who reads them, and how often that was between two turns. */
function world(variant: RulesPort["variant"], affinity: boolean) {
  const turns: number[] = [];
  let reads = 0;
  const watched = (endpoint: PlanEndpoint): PlanEndpoint =>
    Object.defineProperty({ ...endpoint }, "address", {
      enumerable: true,
      get: () => {
        reads++;
        return endpoint.address;
      },
    });
  const large = (count: number) => {
    const made = group(0, count);
    const cluster = made.cluster.map(watched);
    return { ...made, cluster, serving: cluster, ...(affinity && { affinitySeconds: 60 }) };
  };
  const plan = new HandMadePlan();
  plan.put(large(ENDPOINTS));
  const turn = () => {
    turns.push(reads);
    reads = 0;
  };
  let looks = 0;
  const clock = { monotonic: () => looks++ };
  const backend = createIptablesBackend(sink(variant), { turn: async () => turn(), clock });
  const longest = async (work: () => Promise<unknown>) => {
    turns.length = 0;
    reads = 0;
    await work();
    turn();
    return Math.max(...turns);
  };
  return { plan, backend, large, longest };
}

test.each([
  ["legacy", false],
  ["legacy", true],
  ["nft", false],
  ["nft", true],
] as const)("%s, affinity %s: a group of very many endpoints is written in short turns", async (variant, affinity) => {
  const { plan, backend, large, longest } = world(variant, affinity);
  expect(await longest(() => backend.sync(plan))).toBeLessThan(MOST);
  const gone = plan.put(large(ENDPOINTS - 1));
  expect(await longest(() => backend.apply(plan, gone))).toBeLessThan(MOST);
  const same = plan.put(large(ENDPOINTS - 1));
  expect(await longest(() => backend.apply(plan, same))).toBeLessThan(MOST);
});

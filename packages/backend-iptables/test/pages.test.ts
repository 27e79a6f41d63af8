import type { PlanEndpoint } from "@fairlead/core";
import { FakeIptables } from "@fairlead/kernel/fake";
import type { TableState } from "@fairlead/netfilter";
import { nodeEnvironment } from "@fairlead/testkit";
import { changeOf } from "@fairlead/testkit/plans";
import { createTracer, landings } from "@fairlead/trace";
import { describe, expect, test } from "vitest";
import { createIptablesBackend, type RulesPort } from "../src/index.ts";
import { expectOnePage, FLAT, fresh, planWith } from "./support/many-services.ts";
import { RecordingPort } from "./support/recording-port.ts";
import { group, HandMadePlan } from "./support/world.ts";

const PACKET = { family: "IPv4", protocol: "tcp", source: "10.144.1.9", sport: 40_000, dport: 80 } as const;

test("each endpoint has the same chance", async () => {
  const count = FLAT + 1;
  const tracer = createTracer(await fresh(planWith(count)));
  const found = landings(tracer.trace({ ...PACKET, destination: "10.96.0.80" }, nodeEnvironment));
  expect(new Set(found.map(({ destination }) => destination)).size).toBe(count);
  for (const { probability } of found) expect(probability * count).toBeCloseTo(1, 2);
});

test("each endpoint has the chance that it weighs, less what is refused", async () => {
  const count = FLAT + 1;
  const endpoints = Array.from({ length: count }, (_, at) => 1 + (at % 3));
  const total = endpoints.reduce((sum, weight) => sum + weight, count);
  const plan = planWith(count);
  const weighted = Array.from(
    plan.groups,
    ([id, one]) =>
      [
        id,
        one.cluster.length === count ? { ...one, weights: { cluster: { endpoints, refused: count } } } : one,
      ] as const,
  );
  const tracer = createTracer(await fresh({ ...plan, groups: new Map(weighted) }));
  const found = landings(tracer.trace({ ...PACKET, destination: "10.96.0.80" }, nodeEnvironment));
  const cluster = [...plan.groups.values()].find((one) => one.cluster.length === count)?.cluster ?? [];
  const wanted = new Map(cluster.map(({ address, port }, at) => [`${address}:${port}`, (endpoints[at] ?? 0) / total]));
  for (const { verdict, destination, probability } of found)
    expect(probability / (verdict === "accept" ? (wanted.get(destination) ?? 0) : count / total)).toBeCloseTo(1, 2);
  expect(found).toHaveLength(count + 1);
});

test("whether an endpoint knows the client is asked for before any is chosen", async () => {
  const chains = (await fresh(planWith(FLAT + 1, true))).get("nat")?.chains ?? new Map();
  const [top = ""] = [...chains.keys()].filter((chain) => /^KUBE-SVC-[A-Z2-7]{16}$/.test(chain));
  const targets = chains.get(top)?.rules.map((rule: { target?: { chain?: string } }) => rule.target?.chain) ?? [];
  const pages = targets.slice(1, 33).map((chain: string) => chain.slice(top.length));
  expect(pages.every((page: string) => /^\.[A-Z2-7]$/.test(page))).toBe(true);
  expect(targets.slice(33)).toEqual(pages.map((page: string) => `${top}-${page.slice(1)}`));
  const known = pages.flatMap((page: string) => chains.get(top + page)?.rules ?? []);
  expect(known).toHaveLength(FLAT + 1);
  for (const { matches } of known) expect(matches).toContainEqual(expect.objectContaining({ op: "rcheck" }));
});

describe("changes of a large set", () => {
  test("with affinity: rewrite one page and what leads to the pages", async () => {
    const port = new RecordingPort(new FakeIptables({ family: "IPv4", variant: "nft" }));
    const [before, after] = [planWith(FLAT + 1, true), planWith(FLAT + 2, true)];
    const backend = createIptablesBackend(port);
    await backend.sync(before);
    port.take();
    await backend.apply(after, changeOf(before, after));
    expectOnePage(port, 2 * (32 + 250));
  });
});

const ENDPOINTS = 8_000;
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

/** One group whose endpoints count how often they are read between two turns. */
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

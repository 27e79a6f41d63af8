import { toEnd } from "@fairlead/base";
import type { ForwardingPlan } from "@fairlead/core";
import { FakeIptables } from "@fairlead/kernel/fake";
import { type RuleSet, renderRule, type TableCommands } from "@fairlead/netfilter";
import { changeOf, clusterIPGroup, endpoints, nodePlan, planOf } from "@fairlead/testkit/plans";
import { describe, expect, test } from "vitest";
import { stepsOf } from "../src/apply.ts";
import { createIptablesBackend, type IptablesOptions } from "../src/index.ts";
import { RecordingPort } from "./support/recording-port.ts";

const group = (n: number, from: number, at = n) =>
  clusterIPGroup(`s${n}`, `10.96.${1 + (at >> 8)}.${at & 255}`, endpoints(1, { from }));

test("a large change comes in steps; frontends that change places go together, in the first", () => {
  const numbers = Array.from({ length: 1502 }, (_, n) => n);
  const before = planOf(numbers.map((n) => group(n, n)));
  const after = planOf(numbers.map((n) => group(n, n + 3000, [1, 0][n])));
  const change = changeOf(before, after);
  const steps = toEnd(stepsOf(change));
  expect(steps.map(({ groups }) => groups.size)).toEqual([2, 1000, 500]);
  expect([...(steps[0]?.groups.keys() ?? [])]).toEqual(["default/s0/tcp", "default/s1/tcp"]);
  expect(new Map(steps.flatMap(({ groups }) => [...groups]))).toEqual(change.groups);
});

test("a small change is one step", () => {
  const change = changeOf(planOf([group(1, 1)]), planOf([group(1, 2)]));
  expect(toEnd(stepsOf(change))).toEqual([change]);
});

const web = clusterIPGroup("web", "10.96.0.10", endpoints(3));
const other = clusterIPGroup("other", "10.96.0.11", endpoints(3, { from: 100 }));

describe("what a change sends", () => {
  test("an endpoint more: its chain and the chain that spreads over it", async () => {
    const { step } = await synced(planOf([web, other]));
    const [sent] = await step(planOf([clusterIPGroup("web", "10.96.0.10", endpoints(4)), other]));
    expect(kinds(sent)).toEqual(["nat: chain SEP, append SEP ×2, chain SVC, append SVC ×5"]);
  });

  test("an endpoint less: the spreading chain, and its own is deleted", async () => {
    const { step } = await synced(planOf([web, other]));
    const [sent] = await step(planOf([clusterIPGroup("web", "10.96.0.10", endpoints(2)), other]));
    expect(kinds(sent)).toEqual(["nat: chain SVC, append SVC ×3, chain SEP, delete-chain SEP"]);
  });

  test("a service more: its chains and one rule in the dispatch", async () => {
    const { step } = await synced(planOf([web]));
    const [sent] = await step(planOf([web, other]));
    expect(kinds(sent)).toEqual([
      "nat: chain SEP, append SEP ×2, chain SEP, append SEP ×2, chain SEP, append SEP ×2, chain SVC, append SVC ×4, insert SERVICES",
    ]);
  });

  test("a service less: one rule of the dispatch, and its chains from the top down", async () => {
    const { step } = await synced(planOf([web, other]));
    const [sent] = await step(planOf([web]));
    expect(kinds(sent)).toEqual([
      "nat: delete SERVICES, chain SVC, chain SEP ×3, delete-chain SVC, delete-chain SEP ×3",
    ]);
  });

  test("the last endpoint goes: refused before nat lets go", async () => {
    const { step } = await synced(planOf([web]));
    const [sent] = await step(planOf([clusterIPGroup("web", "10.96.0.10", [])]));
    expect(sent?.map(({ table }) => table)).toEqual(["filter", "nat"]);
  });

  test("the first endpoint comes: served before it is no more refused", async () => {
    const { step } = await synced(planOf([clusterIPGroup("web", "10.96.0.10", [])]));
    const [sent] = await step(planOf([web]));
    expect(sent?.map(({ table }) => table)).toEqual(["nat", "filter"]);
  });

  test("the node's addresses: the jumps to node ports, which stay last", async () => {
    const at = (...addresses: string[]) => planOf([web], nodePlan(undefined, { kind: "list", addresses }));
    const { step, fake } = await synced(at("10.201.0.10"));
    const [sent] = await step(at("10.201.0.10", "10.202.0.10"));
    expect(kinds(sent)).toEqual(["nat: delete SERVICES, append SERVICES ×2"]);
    const services = fake.table("nat").chains.get("KUBE-SERVICES")?.rules ?? [];
    expect(services.map(({ destination }) => destination?.cidr)).toEqual([
      "10.96.0.10/32",
      "10.201.0.10/32",
      "10.202.0.10/32",
    ]);
  });

  test("another way to recognize pods is a full sync", async () => {
    const { backend } = await synced(planOf([web]));
    const bridge = planOf([web], nodePlan({ kind: "bridge", interface: "cni0" }));
    expect(await backend.apply(bridge, changeOf(planOf([web]), bridge))).toMatchObject({ kind: "full" });
  });

  test("in the nft variant, many chains go in batches from the bottom up", async () => {
    const groups = Array.from({ length: 300 }, (_, i) =>
      clusterIPGroup(`s${i}`, `10.96.${1 + (i >> 8)}.${i & 255}`, endpoints(2, { from: i * 2 })),
    );
    const { step, fake } = await synced(planOf([web]), "nft");
    const sent = await step(planOf([web, ...groups]));
    expect(sent.flat().map(kindsOfChains)).toEqual([["SEP ×500"], ["SEP ×100"], ["SVC ×250"], ["SVC ×50"], []]);
    expect(fake.table("nat").chains.get("KUBE-SERVICES")?.rules).toHaveLength(302);
    const back = await step(planOf([web]));
    expect(back.flat().map(kindsOfChains)).toEqual([[], ["SVC ×300", "SEP ×200"], ["SEP ×400"]]);
  });
});

describe("a large cluster", () => {
  const big = clusterIPGroup("big", "10.96.0.12", endpoints(997, { from: 1000 }));

  test("the comments of endpoints go with the 1,001st and come back with the 1,000th", async () => {
    const small = planOf([big, web]);
    const large = planOf([big, clusterIPGroup("web", "10.96.0.10", endpoints(4))]);
    const { fake, backend } = await synced(small);
    const before = fake.ruleSet();
    expect(commentedEndpointRules(fake)).toBe(3000);
    expect(await backend.apply(large, changeOf(small, large))).toMatchObject({ kind: "full" });
    expect(commentedEndpointRules(fake)).toBe(0);
    expect(chainTexts(fake.ruleSet())).toEqual(chainTexts(await fresh(large)));
    expect(await backend.apply(small, changeOf(large, small))).toMatchObject({ kind: "full" });
    expect(chainTexts(fake.ruleSet())).toEqual(chainTexts(before));
  });

  test("stale chains are deleted at most once in a period", async () => {
    let now = 0;
    const groups = [1, 2, 3].map((n) => clusterIPGroup(`s${n}`, `10.96.1.${n}`, endpoints(2, { from: n * 10 })));
    const huge = clusterIPGroup("huge", "10.96.0.13", endpoints(1001, { from: 2000 }));
    const { step, fake } = await synced(planOf([huge, ...groups]), "legacy", {
      clock: { monotonic: () => now },
      syncPeriod: 30_000,
    });
    const chains = () => fake.table("nat").chains.size;
    const all = chains();
    await step(planOf([huge, ...groups.slice(1)]));
    expect(chains()).toBe(all - 3);
    now = 30_000;
    await step(planOf([huge, ...groups.slice(2)]));
    expect(chains()).toBe(all - 3);
    // one of those that wait is wanted again
    await step(planOf([huge, ...groups.slice(1)]));
    now = 30_001;
    await step(planOf([huge]));
    expect(chains()).toBe(all - 9);
    expect(chainTexts(fake.ruleSet())).toEqual(chainTexts(await fresh(planOf([huge]))));
  });
});

async function synced(start: ForwardingPlan, variant: "nft" | "legacy" = "legacy", options: IptablesOptions = {}) {
  const fake = new FakeIptables({ family: "IPv4", variant });
  const port = new RecordingPort(fake);
  const backend = createIptablesBackend(port, options);
  await backend.sync(start);
  port.take();
  let plan = start;
  const step = async (next: ForwardingPlan): Promise<TableCommands[][]> => {
    const change = changeOf(plan, next);
    plan = next;
    expect(await backend.apply(next, change)).toMatchObject({ kind: "partial" });
    return port.take();
  };
  return { fake, backend, step };
}

async function fresh(plan: ForwardingPlan) {
  const fake = new FakeIptables({ family: "IPv4", variant: "legacy" });
  await createIptablesBackend(fake).sync(plan);
  return fake.ruleSet();
}

function chainTexts(ruleSet: RuleSet): ReadonlyMap<string, string> {
  const chains = [...ruleSet].flatMap(([table, state]) =>
    [...state.chains.values()].map((chain) => ({ table, ...chain })),
  );
  return new Map(chains.map(({ table, name, rules }) => [`${table} ${name}`, rules.map(renderRule).join("\n")]));
}

function commentedEndpointRules(fake: FakeIptables): number {
  const chains = [...fake.table("nat").chains.values()];
  const rules = chains.flatMap(({ name, rules }) =>
    name.startsWith("KUBE-SEP-") ? rules : rules.filter(({ target }) => leadsToEndpoint(target)),
  );
  return rules.filter(({ matches }) => matches.some(({ kind }) => kind === "comment")).length;
}

function leadsToEndpoint(target: { kind: string } | undefined): boolean {
  return target !== undefined && "chain" in target && String(target.chain).startsWith("KUBE-SEP-");
}

/** `nat: chain SVC, append SVC ×3`: what a payload does, chains by their kind. */
function kinds(payload: readonly TableCommands[] | undefined): string[] {
  return (payload ?? []).map(
    ({ table, commands }) => `${table}: ${runs(commands.map(({ kind, chain }) => `${kind} ${chain.split("-")[1]}`))}`,
  );
}

function kindsOfChains({ commands }: TableCommands): string[] {
  const chains = commands.filter(({ kind }) => kind === "chain");
  const text = runs(chains.map(({ chain }) => String(chain.split("-")[1])));
  return text === "" ? [] : text.split(", ");
}

function runs(words: readonly string[]): string {
  const counted: { word: string; count: number }[] = [];
  for (const word of words) {
    const last = counted.at(-1);
    if (last?.word === word) last.count++;
    else counted.push({ word, count: 1 });
  }
  return counted.map(({ word, count }) => (count === 1 ? word : `${word} ×${count}`)).join(", ");
}

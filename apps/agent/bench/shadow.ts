/**
 * What a shadow costs beside services of one ClusterIP each: its first round, a minute in which nothing changes, and
 * one endpoint that does, in processor time, and how long it held the event loop at most. What kube-proxy holds is text
 * or a table in memory: the kernel and its tools come on top.
 *
 *     pnpm exec node --conditions=@fairlead/source --expose-gc bench/shadow.ts [services] [endpoints]
 */
import { createIptablesBackend } from "@fairlead/backend-iptables";
import { planTable } from "@fairlead/backend-nftables";
import { nextTurn, systemClock } from "@fairlead/base";
import type { ForwardingPlan } from "@fairlead/core";
import { factsOf, type KernelState } from "@fairlead/inspect";
import type { KernelReader } from "@fairlead/kernel";
import { FakeIptables, FakeNodeAddresses } from "@fairlead/kernel/fake";
import { LazySaveParser, renderRuleSet } from "@fairlead/netfilter";
import { ownRules } from "@fairlead/shadow";
import { endpointSlice, goldenNode, goldenPlannerOptions, service, TestCluster } from "@fairlead/testkit";
import { LongestTurn } from "../../../packages/backend-iptables/bench/longest-turn.ts";
import { ShadowFamily } from "../src/shadow/family.ts";
import type { SeenMode } from "../src/shadow/modes.ts";

const [services = 1_000, endpoints = 10] = process.argv.slice(2).map(Number);
const NODE = goldenNode(false);
const [NODE_ADDRESS = ""] = NODE.addresses;
/** As the watch looks: every two seconds, and at rest for three times as long as a look took. */
const PERIOD_MS = 2_000;
const SHARE = 4;
const PIECE = 65_536;

type Held = (plan: ForwardingPlan) => Promise<() => Promise<Pick<KernelState, "ruleSet" | "nftables">>>;

const iptables: Held = async (plan) => {
  const kernel = new FakeIptables({ family: "IPv4" });
  await createIptablesBackend(kernel, { counters: async () => new Set() }).sync(plan);
  const text = [...renderRuleSet(kernel.ruleSet())].join("");
  return async () => {
    const parser = new LazySaveParser({ family: "IPv4" });
    for (let at = 0; at < text.length; at += PIECE) {
      parser.push(text.slice(at, at + PIECE));
      await nextTurn();
    }
    return { ruleSet: ownRules(parser.end()) };
  };
};

const nftables: Held = async (plan) => {
  const table = planTable(plan);
  return async () => ({ ruleSet: new Map(), nftables: [table] });
};

await measure("iptables, nft variant", "iptables", iptables, true);
await measure("iptables, legacy", "iptables", iptables, false);
await measure("nftables", "nftables", nftables, true);

async function measure(what: string, name: "iptables" | "nftables", held: Held, generations: boolean): Promise<void> {
  const nodePortAddresses = { IPv4: { kind: "list", addresses: [NODE_ADDRESS] } } as const;
  const facts = factsOf(name);
  const cluster = new TestCluster(goldenPlannerOptions(NODE, facts.semantics, { nodePortAddresses }));
  for (let at = 0; at < services; at++) cluster.put(...objects(at, endpoints));
  cluster.replan();
  let generation = 1;
  let read = await held(cluster.plan("IPv4"));
  const mode: SeenMode = {
    name,
    facts,
    isHere: async () => true,
    generation: async () => (generations ? generation : undefined),
    read: async (_kernel, _family, environment) => ({ ...(await read()), environment }),
  };
  const news: unknown[] = [];
  const family = new ShadowFamily({
    family: "IPv4",
    mode,
    kernel: reader(),
    grace: 0,
    clock: systemClock,
    onNews: (one) => news.push(one),
  });
  await family.sync(cluster.plan("IPv4"));
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  console.log(`${what}, ${services} services of ${endpoints} endpoints`);
  report("first round", await looks(family, () => family.round !== undefined));
  const one = await looks(family, () => true);
  const pace = Math.max(PERIOD_MS, SHARE * one.milliseconds);
  report(`a quiet minute of ${Math.round(60_000 / pace)} looks`, { ...one, cpu: (one.cpu * 60_000) / pace });
  globalThis.gc?.();
  console.log(`  kept at rest: ${((process.memoryUsage().heapUsed - before) / 1e6).toFixed(1)} MB of heap`);
  cluster.put(...objects(0, endpoints - 1));
  const change = cluster.replan().changes.get("IPv4");
  if (change === undefined) throw new Error("the plan is to change");
  const after = await held(cluster.plan("IPv4"));
  await family.apply(cluster.plan("IPv4"), change);
  read = after;
  generation += 1;
  report("one endpoint less, looked at", await looks(family, () => true));
  if (news.length > 0) throw new Error(`there are differences: ${JSON.stringify(news[0])}`);
}

interface Measured {
  readonly looks: number;
  /** Of this thread, in milliseconds. */
  readonly cpu: number;
  readonly milliseconds: number;
  readonly longest: number;
}

/** Looks until that is so, without rest. */
async function looks(family: ShadowFamily, done: () => boolean): Promise<Measured> {
  const turns = new LongestTurn();
  const [began, cpuBefore] = [performance.now(), cpuTime()];
  for (let count = 1; ; count++) {
    await family.look();
    if (family.problem !== undefined) throw new Error(family.problem);
    if (!done()) continue;
    return { looks: count, cpu: cpuTime() - cpuBefore, milliseconds: performance.now() - began, longest: turns.end() };
  }
}

function report(what: string, { looks: count, cpu, milliseconds, longest }: Measured): void {
  const times = [cpu, milliseconds, longest].map((one) => one.toFixed(1));
  console.log(`  ${what}: ${times[0]} ms CPU, ${times[1]} ms, ${count} looks, longest turn ${times[2]} ms`);
}

function cpuTime(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

function objects(at: number, many: number) {
  const name = `service-${at}`;
  const list = Array.from({ length: many }, (_, index) => {
    const number = at * 16 + index;
    return { address: `10.${144 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}` };
  });
  return [
    service(name, { clusterIPs: [`10.96.${(at >> 8) + 1}.${at & 255}`], ports: [{ port: 80, targetPort: 8080 }] }),
    endpointSlice(`${name}-1`, { service: name, family: "IPv4", ports: [{ port: 8080 }], endpoints: list }),
  ];
}

function reader(): KernelReader {
  const never = async (): Promise<never> => {
    throw new Error("nobody asks for this here");
  };
  const address = {
    family: "IPv4",
    address: NODE_ADDRESS,
    prefixLength: 24,
    interface: "eth0",
    scope: "global",
    up: true,
  } as const;
  return {
    addresses: new FakeNodeAddresses([address]),
    rules: never,
    rulesGeneration: never,
    generation: never,
    hasNftTable: async () => false,
    nftTable: never,
    servers: never,
    sets: never,
    addressesOf: async () => undefined,
    setting: never,
    close: async () => {},
  };
}

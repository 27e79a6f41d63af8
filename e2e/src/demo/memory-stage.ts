import { createIptablesBackend, iptablesSemantics } from "@fairlead/backend-iptables";
import { FakeIptables } from "@fairlead/kernel/fake";
import { now } from "@fairlead/lab/support/wait-until";
import { renderRule } from "@fairlead/netfilter";
import {
  conformanceCase,
  everyMode,
  hosts,
  LEAVE,
  NODE_A,
  nodeEnvironment,
  PlannedCluster,
  type RawObject,
  STANDARD_OPTIONS,
  tracePacket,
} from "@fairlead/testkit";
import { createTracer, type Outcome } from "@fairlead/trace";
import { filterFor } from "../cases/conformance/groups.ts";
import { type Ask, type DemoEnvironment, NODE_PORTS_AT, type Reply } from "./stage.ts";

/** The same demo where there can be no real packets: iptables in memory, packets through the tracer. */
export async function memoryStage(objects: readonly RawObject[]): Promise<DemoEnvironment> {
  const options = STANDARD_OPTIONS;
  const cluster = new PlannedCluster({ options, semantics: iptablesSemantics, filter: filterFor(options) });
  const iptables = new FakeIptables({ family: "IPv4" });
  const backend = createIptablesBackend(iptables);
  const recent = new Map<string, Map<string, readonly number[]>>();
  const change = async (next: readonly RawObject[]) => {
    const at = now();
    const changed = cluster.advance(next).changes.get("IPv4");
    if (changed) await backend.apply(cluster.plan("IPv4"), changed);
    return at;
  };
  await change(objects);
  return {
    ground: "iptables in memory, and the packet tracer in place of real packets",
    real: false,
    nodePortsAt: NODE_PORTS_AT["all, and 127.0.0.1"],
    proof: "on the kernel in memory",
    patienceMs: 60_000,
    change,
    ask: async (ask) => requests(ask, iptables, recent),
    rules: async () => ruleLines(iptables),
    tour: [],
    close: async () => [],
  };
}

function requests(ask: Ask, iptables: FakeIptables, recent: Map<string, Map<string, readonly number[]>>): Reply[] {
  const tracer = createTracer(iptables.ruleSet());
  const packet = tracePacket(
    conformanceCase("demo", "request", { ...ask, history: [[]], expected: everyMode(LEAVE) }).packet,
  );
  return Array.from({ length: ask.count }, (_, index) => {
    const outcomes = tracer.trace(packet, { ...nodeEnvironment, recent });
    const outcome = pick(outcomes, (index + 0.5) / ask.count);
    for (const { list, address } of outcome?.recentlySeen ?? [])
      recent.set(list, new Map(recent.get(list)).set(address, [1]));
    return reply(packet.source, outcome);
  });
}

/** The outcome at a place between 0 and 1, each as wide as it is probable. */
function pick(outcomes: readonly Outcome[], place: number): Outcome | undefined {
  let sum = 0;
  return outcomes.find(({ probability }) => {
    sum += probability;
    return place < sum;
  });
}

function reply(source: string, outcome: Outcome | undefined): Reply {
  const at = now();
  if (outcome === undefined || outcome.verdict === "drop") return { at, end: "silence" };
  if (outcome.verdict === "reject") return { at, end: "refused" };
  const seenAs = outcome.masqueraded ? NODE_A.addresses.IPv4 : source;
  const pod = hosts.find(({ addresses }) => addresses.IPv4 === outcome.destination.address);
  return { at, end: outcome.translated ? (pod?.name ?? outcome.destination.address) : "untouched", seenAs };
}

function ruleLines(iptables: FakeIptables): readonly string[] {
  const chains = [...iptables.ruleSet().values()].flatMap(({ chains: all }) => [...all.values()]);
  return chains.flatMap(({ name, rules }) => rules.map((rule) => `-A ${name} ${renderRule(rule)}`));
}

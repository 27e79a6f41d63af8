import type { IPFamily, PlannerOptions } from "@fairlead/core";
import { type CompareOptions, compareRuleSets, parseSave, type RuleSet, type Table } from "@fairlead/netfilter";
import {
  goldenScenarios,
  type RawObject,
  type RecordedScenario,
  recordedNodePortAddresses,
  recordedScenarios,
  TestCluster,
} from "@fairlead/testkit";
import { createIptablesBackend, type IptablesOptions, type RulesPort } from "../../src/index.ts";
import { plannerOptions } from "./world.ts";

export const TABLES: readonly Table[] = ["mangle", "filter", "nat"];

export interface Recording {
  readonly name: string;
  readonly family: IPFamily;
  readonly text: string;
  readonly objects: readonly RawObject[];
  readonly planner: PlannerOptions;
  readonly backend: IptablesOptions;
}

export const recordings = [...golden(), ...more()];

function golden(): Recording[] {
  return goldenScenarios().flatMap(({ name, objects, node, iptables, ip6tables }) => {
    const common = { name, objects, planner: plannerOptions(node), backend: {} };
    const ipv4: Recording = { ...common, family: "IPv4", text: iptables };
    return ip6tables === undefined ? [ipv4] : [ipv4, { ...common, family: "IPv6", text: ip6tables }];
  });
}

function more(): Recording[] {
  return recordedScenarios().flatMap((scenario) => {
    const { name, objects, options, saves } = scenario;
    const { masqueradeBit, localhostNodePorts, tcpBeLiberal } = options;
    const backend = {
      ...(masqueradeBit !== undefined && { masqueradeBit }),
      ...(localhostNodePorts !== undefined && { localhostNodePorts }),
      ...(tcpBeLiberal !== undefined && { tcpBeLiberal }),
    };
    const common = { name, objects, planner: recordedPlanner(scenario), backend };
    return (["IPv4", "IPv6"] as const).flatMap((family): Recording[] => {
      const text = saves[family];
      return text === undefined ? [] : [{ ...common, family, text }];
    });
  });
}

function recordedPlanner(scenario: RecordedScenario): PlannerOptions {
  const { detectLocal, masqueradeAll = false } = scenario.options;
  return plannerOptions(scenario.node, {
    masqueradeAll,
    nodePortAddresses: {
      IPv4: recordedNodePortAddresses(scenario, "IPv4"),
      IPv6: recordedNodePortAddresses(scenario, "IPv6"),
    },
    ...(detectLocal && { detectors: { IPv4: detectLocal, IPv6: detectLocal } }),
  });
}

export async function sync(
  port: RulesPort,
  { objects, planner, backend }: Recording,
  counters: NonNullable<IptablesOptions["counters"]>,
): Promise<void> {
  const cluster = new TestCluster(planner);
  cluster.put(...objects);
  cluster.replan();
  await createIptablesBackend(port, { ...backend, counters }).sync(cluster.plan(port.family));
}

export function recordedDifferences(
  { text, family }: Recording,
  actual: RuleSet,
  chains: CompareOptions["chains"] = () => true,
) {
  const ours = new Map([...actual].filter(([table]) => TABLES.includes(table)));
  return compareRuleSets(parseSave(text, { family }), ours, { chains });
}

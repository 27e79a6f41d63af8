import type { IPFamily, PlannerOptions } from "@fairlead/core";
import { FakeIptables } from "@fairlead/kernel/fake";
import { type CompareOptions, compareRuleSets, parseSave, type RuleSet, type Table } from "@fairlead/netfilter";
import {
  goldenScenarios,
  type RawObject,
  type RecordedScenario,
  recordedNodePortAddresses,
  recordedScenarios,
  TestCluster,
} from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { COUNTERS, createIptablesBackend, type IptablesOptions, type RulesPort } from "../src/index.ts";
import { kernelTest } from "./support/real-kernel.ts";
import { RecordingPort } from "./support/recording-port.ts";
import { plannerOptions } from "./support/world.ts";

const TABLES: readonly Table[] = ["mangle", "filter", "nat"];

/** One family of one recording. */
interface Recording {
  readonly name: string;
  readonly family: IPFamily;
  readonly text: string;
  readonly objects: readonly RawObject[];
  readonly planner: PlannerOptions;
  readonly backend: IptablesOptions;
}

const recordings = [...golden(), ...more()];

test.each(recordings)("$name, $family: as kube-proxy left it, on the fake", async (recording) => {
  const fake = new FakeIptables({ family: recording.family, nfacct: new Set(COUNTERS) });
  await sync(fake, recording, async (names) => new Set(names));
  expect(differences(recording, fake.ruleSet())).toEqual([]);
});

describe.each(["nft", "legacy"] as const)("on the real kernel, %s", (variant) => {
  kernelTest("every recording as kube-proxy left it", async (kernel) => {
    // One after the other over what the one before has left: a full sync converges from any of them. What stays for
    // ever is the rule in kubelet's chain, which kube-proxy does not take back either.
    for (const recording of recordings) {
      const port = await kernel.open(recording.family, variant);
      await sync(port, recording, kernel.counters);
      const again = new RecordingPort(port);
      await sync(again, recording, kernel.counters);
      expect(again.payloads.join("").match(/^:KUBE-(?:SEP|SVC|SVL|EXT|FW)-.*$/gm), "chains written anew").toBe(null);
      const states = await Promise.all(TABLES.map(async (table) => [table, await port.save(table)] as const));
      expect(
        differences(recording, new Map(states), (_, chain) => chain !== "KUBE-FIREWALL"),
        `${recording.name} ${recording.family}`,
      ).toEqual([]);
    }
  });
});

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

async function sync(
  port: RulesPort,
  { objects, planner, backend }: Recording,
  counters: NonNullable<IptablesOptions["counters"]>,
): Promise<void> {
  const cluster = new TestCluster(planner);
  cluster.put(...objects);
  cluster.replan();
  await createIptablesBackend(port, { ...backend, counters }).sync(cluster.plan(port.family));
}

function differences({ text, family }: Recording, actual: RuleSet, chains: CompareOptions["chains"] = () => true) {
  const ours = new Map([...actual].filter(([table]) => TABLES.includes(table)));
  return compareRuleSets(parseSave(text, { family }), ours, { chains });
}

import type { IPFamily, PlannerOptions } from "@fairlead/core";
import { parseSave, type RuleSet } from "@fairlead/netfilter";
import { type GoldenScenario, goldenScenarios, IPVS_RECORDED_ON, readIpvsText } from "@fairlead/testkit";
import { describeObjects } from "./fake-node.ts";
import { plannerOptions } from "./world.ts";

/** One recording of kube-proxy in ipvs mode, taken apart. */
export interface IpvsRecording {
  readonly name: string;
  readonly scenario: GoldenScenario;
  readonly families: readonly IPFamily[];
  readonly planner: PlannerOptions;
  /** As `objectsOf` describes a node. */
  readonly objects: readonly string[];
  readonly rules: Readonly<Partial<Record<IPFamily, RuleSet>>>;
}

export function ipvsRecordings(): readonly IpvsRecording[] {
  return goldenScenarios().map((scenario) => {
    const { rules, servers, addresses, sets } = readIpvsText(scenario.ipvs);
    return {
      name: scenario.name,
      scenario,
      families: scenario.dualStack ? ["IPv4", "IPv6"] : ["IPv4"],
      planner: planner(scenario),
      objects: describeObjects(servers, addresses, sets),
      rules: {
        IPv4: parseSave(rules.IPv4 ?? "", { family: "IPv4" }),
        ...(rules.IPv6 !== undefined && { IPv6: parseSave(rules.IPv6, { family: "IPv6" }) }),
      },
    };
  });
}

function planner({ node, dualStack }: GoldenScenario): PlannerOptions {
  const nodeAddresses = {
    IPv4: ["127.0.0.1", IPVS_RECORDED_ON.IPv4],
    ...(dualStack && { IPv6: ["::1", IPVS_RECORDED_ON.IPv6, "fe80::1"] }),
  };
  const nodeIPs = { IPv4: IPVS_RECORDED_ON.IPv4, ...(dualStack && { IPv6: IPVS_RECORDED_ON.IPv6 }) };
  return plannerOptions(node, { nodeAddresses, nodeIPs });
}

import type { IPFamily, PlannerOptions } from "@fairlead/core";
import {
  parseSave,
  type RuleSet,
  ServerReader,
  SetReader,
  type SetState,
  type VirtualServerState,
} from "@fairlead/netfilter";
import { type GoldenScenario, goldenScenarios } from "@fairlead/testkit";
import { describeObjects } from "./fake-node.ts";
import { plannerOptions } from "./world.ts";

/** The nodes that the ipvs recordings were made on. */
const ADDRESSES = { IPv4: "10.201.0.60", IPv6: "fd00:201::60" } as const;

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
    const sections = cut(scenario.ipvs);
    const ip6tables = sections.get("ip6tables");
    return {
      name: scenario.name,
      scenario,
      families: scenario.dualStack ? ["IPv4", "IPv6"] : ["IPv4"],
      planner: planner(scenario),
      objects: describeObjects(
        servers(sections.get("ipvsadm") ?? []),
        addresses(sections.get("kube-ipvs0") ?? []),
        sets(sections.get("ipset") ?? []),
      ),
      rules: {
        IPv4: parseSave((sections.get("iptables") ?? []).join("\n"), { family: "IPv4" }),
        ...(ip6tables && { IPv6: parseSave(ip6tables.join("\n"), { family: "IPv6" }) }),
      },
    };
  });
}

function planner({ node, dualStack }: GoldenScenario): PlannerOptions {
  const nodeAddresses = {
    IPv4: ["127.0.0.1", ADDRESSES.IPv4],
    ...(dualStack && { IPv6: ["::1", ADDRESSES.IPv6, "fe80::1"] }),
  };
  const nodeIPs = { IPv4: ADDRESSES.IPv4, ...(dualStack && { IPv6: ADDRESSES.IPv6 }) };
  return plannerOptions(node, { nodeAddresses, nodeIPs });
}

/** `# NAME` begins a section. */
function cut(text: string): ReadonlyMap<string, string[]> {
  const sections = new Map<string, string[]>();
  let current: string[] = [];
  for (const line of text.split("\n")) {
    if (!line.startsWith("# ")) current.push(line);
    else {
      current = [];
      sections.set(line.slice(2), current);
    }
  }
  return sections;
}

function servers(lines: readonly string[]): VirtualServerState[] {
  return items(lines, new ServerReader());
}

function sets(lines: readonly string[]): SetState[] {
  return items(lines, new SetReader());
}

function items<T>(lines: readonly string[], reader: { push(line: string): T | undefined; end(): T | undefined }): T[] {
  return [...lines.map((line) => reader.push(line)), reader.end()].filter((item) => item !== undefined);
}

function addresses(lines: readonly string[]): string[] {
  return lines.flatMap((line) => /inet6? ([^/]+)\//.exec(line)?.[1] ?? []);
}

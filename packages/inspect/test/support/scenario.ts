import { parseArguments } from "@fairlead/config";
import { filterSettings } from "@fairlead/intake";
import type { GoldenNode, RawObject } from "@fairlead/testkit";
import { createManifestsSnapshot } from "@fairlead/watch";
import { type Mode, type ModeSide, type PlannedNode, planNode, readCluster } from "../../src/index.ts";

/** The agent's configuration for its flags. */
function configOf(flags: readonly string[]) {
  const parsed = parseArguments(flags, { readFile: () => "", version: "0.0.0" });
  if (parsed.kind !== "run") throw new Error(`flags of the test are wrong: ${JSON.stringify(parsed)}`);
  const filter = filterSettings(parsed.config);
  if (!filter.ok) throw new Error(filter.errors.join("\n"));
  return { config: parsed.config, filter: filter.options };
}

/** How the agent of that node programs its plans. */
export function settingsOf({ clusterCIDRs }: GoldenNode, mode: Mode) {
  return { mode, config: configOf([`--cluster-cidr=${clusterCIDRs.join(",")}`, `--proxy-mode=${mode}`]).config };
}

function clusterOf(objects: readonly RawObject[], nodeName = "node-a") {
  const readStandardInput = async () => Buffer.from(JSON.stringify(objects));
  const source = createManifestsSnapshot({ paths: ["-"], nodeName, readStandardInput });
  return readCluster(source, new AbortController().signal);
}

interface Scenario {
  readonly objects: readonly RawObject[];
  readonly node: GoldenNode;
}

interface Agent {
  readonly mode?: Mode;
  readonly flags?: readonly string[];
  readonly asKubeProxy?: boolean;
}

/** Objects planned for the node that the golden files were recorded on. */
export async function planned(scenario: Scenario, agent: Agent = {}): Promise<PlannedNode> {
  return (await sideOf(scenario, agent)).planned;
}

/** The same with the configuration that it follows from. */
export async function sideOf(
  { objects, node }: Scenario,
  { mode = "iptables", flags = [], asKubeProxy = false }: Agent = {},
): Promise<ModeSide> {
  const cluster = await clusterOf(objects, node.name);
  const setup = configOf([`--cluster-cidr=${node.clusterCIDRs.join(",")}`, `--proxy-mode=${mode}`, ...flags]);
  const addresses = ["127.0.0.1", "::1", ...node.addresses];
  const { config } = setup;
  return { planned: planNode({ ...setup, cluster, nodeName: node.name, mode, addresses, asKubeProxy }), config };
}

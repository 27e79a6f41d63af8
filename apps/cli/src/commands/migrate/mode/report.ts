import { type ModeChange, type ModeFinding, modeChange, planNode, type SeenNode } from "@fairlead/inspect";
import type { Context } from "../../../frame/context.ts";
import type { OptionValues } from "../../../frame/options.ts";
import type { AgentSetup } from "../../../inputs/agent.ts";
import type { sourceOptions } from "../../../inputs/cluster-options.ts";
import { allNodes, clusterNow } from "../../../inputs/source.ts";
import type { NodeKernel } from "../../../node/access.ts";
import { firewallFindings } from "./firewall.ts";

/** What a change of the mode means for one node. */
export interface NodeReport {
  readonly node: string;
  readonly findings: readonly ModeFinding[];
}

export interface ReportRequest {
  readonly before: AgentSetup;
  readonly after: AgentSetup;
  /** What is known of nodes beyond their objects. */
  readonly seen: ReadonlyMap<string, SeenNode>;
  /** The only nodes that are asked about; absent: all. */
  readonly nodes?: readonly string[] | undefined;
  /** Its addresses in place of those of its Node. */
  readonly addresses?: readonly string[] | undefined;
  /** Its kernel; absent: none is looked at. */
  readonly kernel?: NodeKernel | undefined;
}

/**
 * Plans each node in both modes, of objects that are read once.
 *
 * @throws CommandFailure when they cannot be read
 */
export async function modeReport(
  request: ReportRequest,
  options: OptionValues<typeof sourceOptions>,
  context: Context,
): Promise<readonly NodeReport[]> {
  const { before, after } = request;
  const nodes = await allNodes(options, context);
  const names = request.nodes ?? [...nodes.keys()];
  const wanted = { serviceCIDRs: true, networks: after.networks, config: after.config };
  const cluster = await clusterNow(options, context, wanted);
  const reports: NodeReport[] = [];
  const given = addressesOf(request);
  for (const name of names) {
    const node = nodes.get(name);
    const plan = (setup: AgentSetup) => {
      const own = { ...cluster, ...(node && { node }) };
      const planned = planNode({ ...setup, cluster: own, nodeName: name, ...(given && { addresses: given }) });
      return { planned, config: setup.config };
    };
    // A Node object need not name all of them.
    const seen = { ...(given && { addresses: given }), ...request.seen.get(name) };
    const change = { before: plan(before), after: plan(after), seen };
    const work = async () => [...modeChange(change), ...(await kernelFindings(change, request.kernel))];
    reports.push({ node: name, findings: await context.progress(`comparing the modes on ${name}`, work) });
  }
  return reports;
}

function addressesOf({ addresses, kernel }: ReportRequest): readonly string[] | undefined {
  const known = addresses ?? kernel?.addresses;
  return known === undefined ? undefined : [...new Set(["127.0.0.1", "::1", ...known])];
}

async function kernelFindings(change: ModeChange, kernel: NodeKernel | undefined): Promise<readonly ModeFinding[]> {
  if (kernel === undefined) return [{ topic: "firewall", state: "unknown", found: NOT_LOOKED }];
  const { nodeIPs } = change.after.planned.options;
  const found: ModeFinding[] = [];
  for (const family of kernel.families) {
    if (change.before.planned.planner.plan(family).groups.size === 0) continue;
    found.push(...firewallFindings(change, family, await kernel.state(family, Object.values(nodeIPs))));
  }
  return found;
}

const NOT_LOOKED =
  "rules of other programs were not looked at: run it on the node with --live, or with --rules FILE of iptables-save";

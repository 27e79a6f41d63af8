import { errorText } from "@fairlead/base";
import type { NamedCIDR } from "@fairlead/inspect";
import type { Context } from "../../frame/context.ts";
import type { AgentSetup } from "../../inputs/agent.ts";
import { learnedDoubts } from "../../inputs/learned.ts";
import { clusterNow } from "../../inputs/source.ts";

/** What a cluster says of its networks. */
export interface LearnedCIDRs {
  readonly cidrs: readonly NamedCIDR[];
  readonly serviceCIDRs: readonly string[];
}

const NOTHING: LearnedCIDRs = { cidrs: [], serviceCIDRs: [] };

/** The CIDRs that an agent would learn, and those of services; that they cannot be read is warned of. */
export async function learnedCIDRs(
  { networks, config }: AgentSetup,
  access: { readonly kubeconfig: string | undefined; readonly context: string | undefined },
  context: Context,
): Promise<LearnedCIDRs> {
  if (networks === undefined) return NOTHING;
  try {
    const options = { ...access, file: [], node: undefined };
    // Where endpoints are is not asked.
    const { learned, serviceCIDRs = [] } = await clusterNow(options, context, {
      slicesOf: () => new Set(),
      networks,
      config,
    });
    if (learned === undefined) return NOTHING;
    for (const line of learnedDoubts(learned)) context.warn(line);
    const cidrs = learned.report.cidrs.filter(({ stage }) => stage !== "refused");
    return {
      serviceCIDRs,
      cidrs: cidrs.map(({ cidr, side, source, objects }) => {
        return { cidr, use: side === "own" ? "pods" : "excluded pods", source: { id: source, objects } };
      }),
    };
  } catch (error) {
    context.warn(`cannot read the networks' objects; learned CIDRs are not checked: ${errorText(error)}`);
    return NOTHING;
  }
}

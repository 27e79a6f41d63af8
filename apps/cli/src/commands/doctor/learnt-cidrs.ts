import { errorText } from "@fairlead/base";
import type { NamedCIDR } from "@fairlead/inspect";
import type { Context } from "../../frame/context.ts";
import type { AgentSetup } from "../../inputs/agent.ts";
import { learntDoubts } from "../../inputs/learnt.ts";
import { clusterNow } from "../../inputs/source.ts";

/** What a cluster says of its networks. */
export interface LearntCIDRs {
  readonly cidrs: readonly NamedCIDR[];
  readonly serviceCIDRs: readonly string[];
}

const NOTHING: LearntCIDRs = { cidrs: [], serviceCIDRs: [] };

/** The CIDRs that an agent would learn, and those of services; that they cannot be read is warned of. */
export async function learntCIDRs(
  { networks, config }: AgentSetup,
  access: { readonly kubeconfig: string | undefined; readonly context: string | undefined },
  context: Context,
): Promise<LearntCIDRs> {
  if (networks === undefined) return NOTHING;
  try {
    const options = { ...access, file: [], node: undefined };
    // Where endpoints are is not asked.
    const { learnt, serviceCIDRs = [] } = await clusterNow(options, context, {
      slicesOf: () => new Set(),
      networks,
      config,
    });
    if (learnt === undefined) return NOTHING;
    for (const line of learntDoubts(learnt)) context.warn(line);
    const cidrs = learnt.report.cidrs.filter(({ stage }) => stage !== "refused");
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

import type { NamedCIDR } from "@fairlead/inspect";
import type { Context } from "../../frame/context.ts";
import { learnedDoubts } from "../../inputs/learned.ts";
import type { ReadCluster } from "../../inputs/source.ts";

/** What a cluster says of its networks. */
export interface LearnedCIDRs {
  readonly cidrs: readonly NamedCIDR[];
  readonly serviceCIDRs: readonly string[];
}

/** The CIDRs that an agent would learn, and those of services; what does not count is warned of. */
export function learnedCIDRs(
  { learned, serviceCIDRs = [] }: Pick<ReadCluster, "learned" | "serviceCIDRs">,
  context: Pick<Context, "warn">,
): LearnedCIDRs | undefined {
  if (learned === undefined) return undefined;
  for (const line of learnedDoubts(learned)) context.warn(line);
  const cidrs = learned.report.cidrs.filter(({ stage }) => stage !== "refused");
  return {
    serviceCIDRs,
    cidrs: cidrs.map(({ cidr, side, source, objects }) => {
      return { cidr, use: side === "own" ? "pods" : "excluded pods", source: { id: source, objects } };
    }),
  };
}

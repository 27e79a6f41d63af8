import { type BaseChain, type NftChain, statements } from "@fairlead/netfilter/nft";
import type { PlanContext } from "./context.ts";

/**
 * kube-proxy's base chains: each leads to chains of its own, filters for the first packet of a connection only.
 * Alongside another proxy each comes before that one's of the same kind: a packet to an address without a service of
 * the other one, which that one drops or refuses, is translated or answered by then.
 */
export function baseChain({ beside }: Pick<PlanContext, "beside">) {
  return (
    type: BaseChain["type"],
    hook: BaseChain["hook"],
    priority: number,
    name: string,
    ...to: readonly string[]
  ): NftChain => ({
    name,
    base: { type, hook, priority: beside ? priority - 1 : priority, policy: "accept" },
    rules: to.map((chain) => ({
      expressions: [...(type === "nat" ? [] : statements.newConnection), ...statements.jump(chain)],
    })),
  });
}

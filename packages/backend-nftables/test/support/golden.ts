import { familyOf, IP_FAMILIES, type IPFamily } from "@fairlead/base";
import type { ForwardingPlan, PlannerOptions } from "@fairlead/core";
import { NFT_FAMILY } from "@fairlead/netfilter/nft";
import { type GoldenNode, goldenPlannerOptions, goldenScenarios, TestCluster } from "@fairlead/testkit";
import { nftablesSemantics } from "../../src/index.ts";

/** What the agent plans with in this mode: node ports are served on the node's own addresses only. */
export function plannerOptions(node: GoldenNode, more: Partial<PlannerOptions> = {}): PlannerOptions {
  const of = (values: readonly string[], family: IPFamily) =>
    values.filter((value) => familyOf(value.split("/")[0] ?? "") === family);
  const byFamily = <T>(value: (family: IPFamily) => T) => ({ IPv4: value("IPv4"), IPv6: value("IPv6") });
  return goldenPlannerOptions(node, nftablesSemantics, {
    nodePortAddresses: byFamily((family) => ({ kind: "list", addresses: of(node.addresses, family) })),
    serviceCIDRs: byFamily((family) => of(node.serviceCIDRs, family)),
    ...more,
  });
}

/** One family of one scenario. */
export interface Recording {
  readonly name: string;
  readonly family: IPFamily;
  readonly plan: ForwardingPlan;
  /** The table, as `nft list ruleset` printed what kube-proxy made. */
  readonly text: string;
}

export function recordings(): readonly Recording[] {
  return goldenScenarios().flatMap(({ name, objects, node, nft }) => {
    const cluster = new TestCluster(plannerOptions(node));
    cluster.put(...objects);
    cluster.replan();
    return IP_FAMILIES.flatMap((family) => {
      const [, text] = new RegExp(`^(table ${NFT_FAMILY[family]} kube-proxy \\{\n.*?\n\\}\n)`, "ms").exec(nft) ?? [];
      return text === undefined ? [] : [{ name, family, plan: cluster.plan(family), text }];
    });
  });
}

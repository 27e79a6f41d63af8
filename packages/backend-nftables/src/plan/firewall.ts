import { hostCIDR } from "@fairlead/base";
import type { AllowedSources, ServicePortGroup } from "@fairlead/core";
import { type NftChain, statements } from "@fairlead/netfilter/nft";
import type { PlanContext } from "./context.ts";
import { firewallChain } from "./names.ts";

/**
 * The chain of a service port that only some may use: a rule for each range that may, then the drop. kube-proxy has one
 * rule with an anonymous set, which costs the kernel a walk over the whole transaction.
 */
export function firewall(
  { name, protocol, frontends }: ServicePortGroup,
  { family }: PlanContext,
): NftChain | undefined {
  const gate = frontends.find((frontend) => frontend.gate !== undefined)?.gate;
  if (gate === undefined) return undefined;
  const rules = allowed(gate).map((cidr) => ({
    expressions: [...statements.addressIn(family, "saddr", cidr), ...statements.verdict({ kind: "return" })],
  }));
  return {
    name: firewallChain(name, protocol),
    rules: [...rules, { expressions: statements.verdict({ kind: "drop" }) }],
  };
}

function allowed({ ranges, addresses }: AllowedSources): readonly string[] {
  return [...new Set([...ranges, ...addresses.map((address) => hostCIDR(address))])];
}

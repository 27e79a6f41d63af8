import { createIptablesBackend } from "@fairlead/backend-iptables";
import type { EndpointFilter } from "@fairlead/core";
import { createEndpointFilter } from "@fairlead/endpoint-filter";
import { FakeIptables } from "@fairlead/kernel/fake";
import type { AgentOptions, BackendsUnderTest } from "@fairlead/testkit";

/** The filter as the agent makes it from its options. */
export function filterFor(options: AgentOptions): EndpointFilter {
  return createEndpointFilter({ ...options, excludeCIDRs: options.excludeClusterCIDRs });
}

/** iptables mode over the kernel in memory. */
export function fakeIptables(variant: "nft" | "legacy"): BackendsUnderTest {
  return {
    filter: filterFor,
    open: (family, { localhostNodePorts }) => {
      const iptables = new FakeIptables({ family, variant });
      const backend = createIptablesBackend(iptables, { localhostNodePorts });
      return { backend, ruleSet: () => iptables.ruleSet() };
    },
  };
}

import { createIptablesBackend } from "@fairlead/backend-iptables";
import { createIpvsBackend, DEVICE } from "@fairlead/backend-ipvs";
import type { EndpointFilter } from "@fairlead/core";
import { createEndpointFilter } from "@fairlead/endpoint-filter";
import { FakeIpset, FakeIptables, FakeIpvsadm, FakeLinks } from "@fairlead/kernel/fake";
import { type AgentOptions, type BackendsUnderTest, ipvsEnvironment } from "@fairlead/testkit";

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

/** ipvs mode over the kernel in memory. */
export const fakeIpvs: BackendsUnderTest = {
  filter: filterFor,
  open: (family) => {
    const servers = new FakeIpvsadm();
    const sets = new FakeIpset();
    const links = new FakeLinks();
    const rules = new FakeIptables({ family, variant: "legacy", sets });
    return {
      backend: createIpvsBackend({ servers, sets, links, rules }),
      ruleSet: () => rules.ruleSet(),
      environment: () =>
        ipvsEnvironment({ servers: servers.servers(), sets: sets.sets(), addresses: links.device(DEVICE) ?? [] }),
    };
  },
};

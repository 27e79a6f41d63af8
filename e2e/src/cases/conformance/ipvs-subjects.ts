import { createIpvsBackend, DEVICE } from "@fairlead/backend-ipvs";
import { FakeIpset, FakeIptables, FakeIpvsadm, FakeLinks } from "@fairlead/kernel/fake";
import { type BackendsUnderTest, ipvsEnvironment } from "@fairlead/testkit";
import { filterFor } from "./iptables-subjects.ts";

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

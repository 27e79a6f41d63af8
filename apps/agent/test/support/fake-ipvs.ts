import { FakeIpset, FakeIpvsadm, FakeLinks, FakeModules } from "@fairlead/kernel/fake";

/** What a kernel in memory has of ipvs mode. */
export function fakeIpvs({ supported = true }: { readonly supported?: boolean } = {}) {
  return {
    ipvs: { servers: new FakeIpvsadm({ supported }), sets: new FakeIpset(), links: new FakeLinks() },
    modules: new FakeModules(supported ? ["ip_vs", "ip_vs_rr", "nf_conntrack", "ip_set", "xt_set", "dummy"] : []),
  };
}

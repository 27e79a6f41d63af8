import { COUNTERS, createIptablesBackend, iptablesSemantics } from "@fairlead/backend-iptables";
import { FakeIptables } from "@fairlead/kernel/fake";
import { renderRuleSet } from "@fairlead/netfilter";
import type { RawObject } from "@fairlead/testkit";
import { clusterOn } from "./fairlead.ts";
import type { GuestNeeds } from "./measure.ts";
import { inNode } from "./network.ts";
import type { Subject } from "./subject.ts";

/** What a guest needs for rules of the legacy variant, which the tools load from what iptables-save prints. */
export const IPTABLES_GUEST: GuestNeeds = {
  programs: ["iptables-legacy-restore", "nfacct"],
  // The tool's own libraries are found by themselves, those of its matches are not.
  libraries: ["/usr/lib/x86_64-linux-gnu/xtables", "/lib/x86_64-linux-gnu/libm.so.6", "/etc/protocols"],
  modules: [
    ...["ip_tables", "iptable_nat", "iptable_filter", "iptable_mangle", "ipt_REJECT", "nfnetlink_acct"],
    ...["comment", "conntrack", "mark", "statistic", "nat", "MASQUERADE", "addrtype", "nfacct", "tcpudp"].map(
      (name) => `xt_${name}`,
    ),
  ],
  // A restore replaces what is there.
  flush: "true",
};

/** @param text as iptables-save prints it */
export function iptablesTables(name: string, file: string, text: string): Subject {
  const counters = COUNTERS.map((counter) => inNode(`sh -c "/bin/nfacct add ${counter} || true"`));
  return { name, files: { [file]: text }, load: [...counters, inNode(`iptables-legacy-restore /guest/${file}`)] };
}

/** The tables that the modes write. */
export function rulesText(fake: FakeIptables): string {
  const tables = [...fake.ruleSet()].filter(([table]) => table === "nat" || table === "filter");
  return [...renderRuleSet(new Map(tables))].join("");
}

/** The rules of the agent's backend after a full sync. */
export async function fairleadIptables(name: string, objects: readonly RawObject[]): Promise<Subject> {
  const counters = new Set(COUNTERS);
  const fake = new FakeIptables({ family: "IPv4", variant: "legacy", nfacct: counters });
  const backend = createIptablesBackend(fake, { counters: async () => counters });
  await backend.sync(clusterOn(objects, iptablesSemantics).plan("IPv4"));
  return iptablesTables(name, "own", rulesText(fake));
}

import { createIptablesBackend } from "@fairlead/backend-iptables";
import { IP_FAMILIES } from "@fairlead/base";
import type { Backend, IPFamily } from "@fairlead/core";
import { createNfacct, type IptablesClient, openIptables, type Variant } from "@fairlead/kernel";
import type { Lab } from "@fairlead/lab/plain/lab";
import { applySettings } from "@fairlead/lab/wire";
import type { RuleSet } from "@fairlead/netfilter";
import type { CaseGroup } from "./groups.ts";
import { syncGroup } from "./sync-group.ts";

/** node-a of a lab with the iptables of both families, in one variant. */
export interface ProgrammedLab {
  /** Takes node-a through the group's history and gives what its kernel then holds, as iptables-save prints it. */
  program(group: CaseGroup): Promise<Readonly<Record<IPFamily, RuleSet>>>;
  /** What the kernel holds now. */
  read(): Promise<Readonly<Record<IPFamily, RuleSet>>>;
  /** Removes everything that was programmed. */
  cleanup(): Promise<void>;
}

/** @throws IptablesError when the variant is not to be had here */
export async function programmedLab(lab: Lab, variant: Variant): Promise<ProgrammedLab> {
  const runner = lab.runner("node-a");
  const clients = await Promise.all(IP_FAMILIES.map((family) => openIptables(runner, { family, variant })));
  const nfacct = createNfacct(runner);
  const counters = async (names: readonly string[]) => {
    const made = await Promise.all(names.map(async (name) => ((await nfacct.ensure(name)).ok ? [name] : [])));
    return new Set(made.flat());
  };
  // What `requiredSysctls` asks for.
  await applySettings(runner, { "net/ipv4/conf/all/route_localnet": "1" });
  const backendsFor = (group: CaseGroup): readonly Backend[] =>
    clients.map((client) =>
      createIptablesBackend(client, { localhostNodePorts: group.options.localhostNodePorts, counters }),
    );
  const read = async () => {
    const [v4, v6] = await Promise.all(clients.map(readRuleSet));
    return { IPv4: v4 ?? new Map(), IPv6: v6 ?? new Map() };
  };
  return {
    read,
    program: async (group) => {
      await syncGroup(group, backendsFor(group));
      return read();
    },
    cleanup: async () => {
      for (const client of clients) await createIptablesBackend(client).cleanup();
    },
  };
}

async function readRuleSet(client: IptablesClient): Promise<RuleSet> {
  return new Map([
    ["filter", await client.save("filter")],
    ["nat", await client.save("nat")],
  ]);
}

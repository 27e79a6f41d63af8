import { createIpvsBackend, type IpvsPort, ipvsSemantics } from "@fairlead/backend-ipvs";
import { FakeIpset, FakeIptables, FakeIpvsadm, FakeLinks } from "@fairlead/kernel/fake";
import { renderLinkCommand, renderServerCommand, renderSetCommand } from "@fairlead/netfilter";
import type { RawObject } from "@fairlead/testkit";
import { clusterOn } from "./fairlead.ts";
import { IPTABLES_GUEST, rulesText } from "./iptables.ts";
import type { GuestNeeds } from "./measure.ts";
import { inNode } from "./network.ts";
import type { Subject } from "./subject.ts";

export const IPVS_GUEST: GuestNeeds = {
  ...IPTABLES_GUEST,
  programs: ["iptables-legacy-restore", "ipset", "ipvsadm"],
  modules: [
    ...(IPTABLES_GUEST.modules ?? []),
    ...["ip_vs", "ip_vs_rr", "dummy", "ip_set", "ip_set_hash_ip", "ip_set_hash_ipport", "ip_set_hash_ipportip"],
    ...["ip_set_hash_ipportnet", "ip_set_bitmap_port", "xt_set", "xt_ipvs"],
  ],
};

const SETTINGS = ["net.ipv4.vs.conntrack=1", "net.ipv4.vs.expire_nodest_conn=1"];

/** What the agent's backend does in a full sync, as the tools take it. */
export async function fairleadIpvs(name: string, objects: readonly RawObject[]): Promise<Subject> {
  const { port, lines, rules } = recordingPort();
  await createIpvsBackend(port).sync(clusterOn(objects, ipvsSemantics).plan("IPv4"));
  const text = (of: readonly string[]) => of.map((line) => `${line}\n`).join("");
  const files = {
    links: text(lines.links),
    sets: text(lines.sets),
    servers: text(lines.servers),
    rules: rulesText(rules),
  };
  const load = [
    `sysctl -q -w ${SETTINGS.join(" ")}`,
    "ip -batch /guest/links",
    "ipset restore -exist -file /guest/sets",
    "sh -c '/bin/ipvsadm --restore < /guest/servers'",
    "iptables-legacy-restore /guest/rules",
  ];
  return { name, files, load: load.map(inNode) };
}

/** A kernel in memory, and the commands that it is given. */
function recordingPort() {
  const lines = { servers: [] as string[], sets: [] as string[], links: [] as string[] };
  const [servers, sets, links] = [new FakeIpvsadm(), new FakeIpset(), new FakeLinks()];
  const rules = new FakeIptables({ family: "IPv4", variant: "legacy", sets });
  const port: IpvsPort = {
    servers: {
      save: () => servers.save(),
      connections: (of) => servers.connections(of),
      change: (commands) => servers.change(noted(commands, renderServerCommand, lines.servers)),
    },
    sets: {
      save: (names) => sets.save(names),
      change: (commands) => sets.change(noted(commands, renderSetCommand, lines.sets)),
    },
    links: {
      addresses: (device) => links.addresses(device),
      change: (commands) => links.change(noted(commands, renderLinkCommand, lines.links)),
    },
    rules,
  };
  return { port, lines, rules };
}

function noted<T>(commands: Iterable<T>, render: (command: T) => string, to: string[]): readonly T[] {
  const all = [...commands];
  for (const command of all) to.push(render(command));
  return all;
}

/** Nodes of the lab that are programmed with groups of the table. */

import { createIptablesBackend } from "@fairlead/backend-iptables";
import { createIpvsBackend, DEVICE, type IpvsPort, requiredSysctls } from "@fairlead/backend-ipvs";
import { IP_FAMILIES } from "@fairlead/base";
import type { Backend, IPFamily } from "@fairlead/core";
import {
  createIpset,
  createIpvsadm,
  createLinks,
  createNfacct,
  type IpsetClient,
  type IptablesClient,
  kernelVersion,
  openIptables,
  type Variant,
} from "@fairlead/kernel";
import { netlinkIn } from "@fairlead/kernel/netns";
import type { Lab, LabOptions } from "@fairlead/lab/plain/lab";
import { applySettings } from "@fairlead/lab/wire";
import type { RuleSet } from "@fairlead/netfilter";
import { type ConformanceCase, ipvsEnvironment } from "@fairlead/testkit";
import type { Environment } from "@fairlead/trace";
import { type CaseGroup, syncGroup } from "./groups.ts";

export interface ProgrammedLab {
  /** Takes node-a through the group's history and gives what its kernel then holds, as iptables-save prints it. */
  program(group: CaseGroup): Promise<Readonly<Record<IPFamily, RuleSet>>>;
  read(): Promise<Readonly<Record<IPFamily, RuleSet>>>;
  cleanup(): Promise<void>;
}

/** @throws IptablesError when the variant is unavailable here */
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

/** What node-a's kernel holds, ready for the tracer. */
export interface IpvsNodeState {
  readonly ruleSets: Readonly<Record<IPFamily, RuleSet>>;
  readonly environment: Environment;
}

export interface ProgrammedIpvs {
  /** Takes node-a through the group's history and gives what its kernel then holds. */
  program(group: CaseGroup): Promise<IpvsNodeState>;
  cleanup(): Promise<void>;
}

/**
 * How virtual servers, sets and addresses are read and written: by netlink as an agent does, or by the tools where it
 * cannot.
 */
export type IpvsClient = "netlink" | "tools";

/** The backend's port, with rules and all sets that can be read as well. */
type NodePort = IpvsPort & { readonly rules: IptablesClient; readonly sets: IpsetClient };

/**
 * What the backends of both families reach of node-a, in the order of `families`, with the mode's kernel settings made.
 *
 * @throws IptablesError when the legacy variant is unavailable here
 */
export async function ipvsPorts(lab: Lab, way: IpvsClient = "netlink"): Promise<readonly NodePort[]> {
  const runner = lab.runner("node-a");
  const rules = await Promise.all(IP_FAMILIES.map((family) => openIptables(runner, { family, variant: "legacy" })));
  const { generic, netfilter, route } = netlinkIn(lab.namespace("node-a"));
  const tools = { servers: createIpvsadm(runner), sets: createIpset(runner), links: createLinks(runner) };
  const netlink = {
    servers: createIpvsadm(runner, { open: generic }),
    sets: createIpset(runner, { open: netfilter }),
    links: createLinks(runner, { open: route }),
  };
  const shared = way === "netlink" ? netlink : tools;
  const required = requiredSysctls({ strictARP: false, kernel: kernelVersion() });
  const settings = required.map(({ name, value }) => [name.replaceAll(".", "/"), value]);
  await applySettings(runner, Object.fromEntries(settings));
  return rules.map((client) => ({ ...shared, rules: client }));
}

export async function programmedIpvs(lab: Lab, way: IpvsClient): Promise<ProgrammedIpvs> {
  const ports = await ipvsPorts(lab, way);
  const backends = ports.map((port) => createIpvsBackend(port));
  return {
    program: async (group) => {
      await syncGroup(group, backends);
      return read(ports);
    },
    cleanup: async () => {
      for (const backend of backends) await backend.cleanup();
    },
  };
}

/** Where the lab has to listen so that whatever a packet of these rows reaches gives an answer. */
export function portsOf(rows: readonly ConformanceCase[]): LabOptions {
  const landing = (protocol: "TCP" | "UDP") =>
    rows.filter(({ packet }) => packet.protocol === protocol).map(({ packet }) => packet.port);
  const pods = [53, 80, 8080, 9090];
  return {
    podPorts: { tcp: pods, udp: pods },
    // 6443: where default/kubernetes leads.
    landingPorts: { tcp: unique([8080, 6443, ...landing("TCP")]), udp: unique([8080, ...landing("UDP")]) },
  };
}

export function bothPorts(one: LabOptions, other: LabOptions): LabOptions {
  const both = (ports: keyof LabOptions) => ({
    tcp: unique([...one[ports].tcp, ...other[ports].tcp]),
    udp: unique([...one[ports].udp, ...other[ports].udp]),
  });
  return { podPorts: both("podPorts"), landingPorts: both("landingPorts") };
}

async function readRuleSet(client: IptablesClient): Promise<RuleSet> {
  return new Map([
    ["filter", await client.save("filter")],
    ["nat", await client.save("nat")],
  ]);
}

async function read(ports: readonly NodePort[]): Promise<IpvsNodeState> {
  const [port] = ports;
  if (port === undefined) throw new Error("no family to read");
  const [v4, v6] = await Promise.all(ports.map(({ rules }) => readRuleSet(rules)));
  const [servers, sets, addresses] = await Promise.all([
    collect(port.servers.save()),
    collect(port.sets.save()),
    port.links.addresses(DEVICE),
  ]);
  return {
    ruleSets: { IPv4: v4 ?? new Map(), IPv6: v6 ?? new Map() },
    environment: ipvsEnvironment({ servers, sets, addresses: addresses ?? [] }),
  };
}

async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const collected: Item[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}

function unique(ports: readonly number[]): readonly number[] {
  return [...new Set(ports)];
}

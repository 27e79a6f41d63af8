/** What a node's state means to packets and to comparisons. */

import { hostCIDR } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import { LazySaveParser, type SavedRules, type SetState } from "@fairlead/netfilter";
import { NFT_FAMILY, type NftTable } from "@fairlead/netfilter/nft";
import { type Environment, type Ipvs, type PacketSet, packetSet, type Route, routing } from "@fairlead/trace";
import type { IpvsObjects } from "./compare/ipvs.ts";
import type { KernelState } from "./compare/ways.ts";
import type { NodeState, StatePart, StateParts } from "./node-state.ts";

/** A part of a state is needed and was not read. */
export class UnreadState extends Error {
  override readonly name = "UnreadState";
}

/** @throws UnreadState with the reason why it is absent */
export function partOf<Part extends StatePart>(state: NodeState, part: Part): StateParts[Part] {
  const found: Partial<StateParts>[Part] = state[part];
  if (found === undefined) throw new UnreadState(state.problems[part] ?? `${part} was not read`);
  return found;
}

/**
 * The rules of iptables in the variant that the host uses; none on a host that has only nft.
 *
 * @throws UnreadState when they could not be listed; RuleParseError for what is no listing
 */
export function rulesOf(state: NodeState, family: IPFamily): SavedRules {
  const used = partOf(state, "rules").find((one) => one.inUse && one.family === family);
  if (used?.save !== undefined) return savedRules(used.save, family);
  if (used?.notInstalled === true && state.tables !== undefined) return new Map();
  throw new UnreadState(used?.problem ?? `no rules of ${family} were read`);
}

/** What `iptables-save` printed. @throws RuleParseError for what is no listing */
export function savedRules(save: string, family: IPFamily): SavedRules {
  const parser = new LazySaveParser({ family });
  parser.push(save);
  return parser.end();
}

/** The tables of nftables in one family; undefined: they could not be listed. */
export function tablesOf({ tables }: NodeState, family: IPFamily): readonly NftTable[] | undefined {
  return tables?.filter((table) => table.family === NFT_FAMILY[family]);
}

/**
 * What the kernel holds for one family.
 *
 * @throws UnreadState and RuleParseError as `rulesOf`
 */
export function kernelStateOf(state: NodeState, family: IPFamily): KernelState {
  return {
    ruleSet: rulesOf(state, family),
    nftables: tablesOf(state, family) ?? [],
    environment: liveEnvironment(state, family),
  };
}

/**
 * What the host knows alongside its rules, as packets meet it.
 *
 * @throws UnreadState without addresses and routes
 */
export function liveEnvironment(state: NodeState, family: IPFamily): Environment {
  const objects = ipvsObjectsOf(state);
  const on = (key: string) => state.settings?.[key] === 1;
  const settings = {
    conntrack: on("net/ipv4/vs/conntrack"),
    expireQuiescentTemplate: on("net/ipv4/vs/expire_quiescent_template"),
  };
  const lists = Object.entries(state.recent ?? {});
  return {
    ...ipvsEnvironment(hostEnvironment(state, family), objects, settings),
    recent: new Map(lists.map(([name, seen]) => [name, new Map(Object.entries(seen))])),
  };
}

/**
 * The host's own addresses and routes.
 *
 * @throws UnreadState without them
 */
export function hostEnvironment(state: NodeState, family: IPFamily): Environment {
  const outInterface = routing(routesOf(state, family));
  return { ...addressEnvironment(partOf(state, "addresses"), family), outInterface };
}

/** A host with these addresses. */
export function addressEnvironment(addresses: Readonly<StateParts["addresses"]>, family: IPFamily): Environment {
  const own = addresses.filter((one) => one.family === family);
  const inOrder = [...own.filter(({ scope }) => scope === "global"), ...own.filter(({ scope }) => scope !== "global")];
  return {
    localAddresses: inOrder.map(({ address }) => address),
    redirectAddress: (name) => own.find((one) => one.interface === name)?.address,
  };
}

/** @throws UnreadState without them */
export function routesOf(state: NodeState, family: IPFamily): readonly Route[] {
  return partOf(state, "routes").flatMap(({ devices: [outInterface], ...route }) => {
    if (route.family !== family || outInterface === undefined) return [];
    const { cidr, metric } = route;
    return [{ cidr, outInterface, ...(metric !== undefined && { metric }) }];
  });
}

/** A destination of a route as a CIDR. */
export function routeCIDR(destination: string, family: IPFamily): string {
  if (destination === "default") return family === "IPv4" ? "0.0.0.0/0" : "::/0";
  return destination.includes("/") ? destination : hostCIDR(destination);
}

/** What ipvs mode has in the kernel; nothing where there is no ipset or IPVS. */
export function ipvsObjectsOf({ servers = [], sets = [], serviceAddresses }: NodeState): IpvsObjects {
  return { servers, sets, addresses: serviceAddresses ? new Set(serviceAddresses) : undefined };
}

type Settings = Omit<Ipvs, "servers">;

/** The environment with virtual servers, sets and their addresses; without settings those that ipvs mode makes. */
export function ipvsEnvironment(
  host: Environment,
  { servers, sets, addresses }: IpvsObjects,
  settings: Settings = { conntrack: true, expireQuiescentTemplate: true },
): Environment {
  return {
    ...host,
    localAddresses: [...(host.localAddresses ?? []), ...(addresses ?? [])],
    sets: packetSets(sets),
    ...(servers.length > 0 && { ipvs: { servers, ...settings } }),
  };
}

/** Sets of types that the tracer does not know are left out: a rule that asks for one cannot be decided. */
function packetSets(sets: readonly SetState[]): ReadonlyMap<string, PacketSet> {
  return new Map(
    sets.flatMap(({ name, type, members }) => {
      try {
        return [[name, packetSet(type, members)] as const];
      } catch (error) {
        if (error instanceof RangeError) return [];
        throw error;
      }
    }),
  );
}

/** Whether the node lets packets in state INVALID through; undefined: it was not read. */
export function isTcpLiberal({ settings }: NodeState): boolean | undefined {
  return settings && (settings["net/netfilter/nf_conntrack_tcp_be_liberal"] ?? 0) !== 0;
}

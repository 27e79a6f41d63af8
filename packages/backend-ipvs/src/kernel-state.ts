/** What the kernel holds, and what of it belongs to this agent. */

import { familyOf, inAnyOf, ofFamily } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import {
  type Rule,
  renderServerKey,
  type SetState,
  type Table,
  type TableState,
  type VirtualServer,
} from "@fairlead/netfilter";
import { DEVICE, IPVS_OUT_FILTER } from "./plan/context.ts";
import { isGroupChainOfIptablesMode, JUMPS, TABLES } from "./plan/frame-nat.ts";
import type { BarredAddress } from "./plan/group.ts";
import { SET_KEYS, type SetKey, setDefinition } from "./plan/sets.ts";
import type { IpvsPort, RulesPort } from "./port.ts";

/** What a full sync has to know of the kernel before it writes, virtual servers aside: those are read as a stream. */
export interface KernelState {
  readonly sets: ReadonlyMap<SetKey, SetState>;
  /** The family's addresses on the service device; undefined: there is no such device. */
  readonly addresses: ReadonlySet<string> | undefined;
  readonly rules: RulesState | "as wanted";
}

/** @param rulesStand all rules are known to be as wanted: they are not read */
export async function readKernel(port: IpvsPort, rulesStand: boolean): Promise<KernelState> {
  const { family } = port.rules;
  return {
    sets: await readSets(port, family),
    addresses: await readAddresses(port, family),
    rules: rulesStand ? "as wanted" : await readRules(port.rules),
  };
}

/**
 * Our sets among all that there are.
 *
 * @throws Error for a set that has our name and another type
 */
export async function readSets({ sets }: IpvsPort, family: IPFamily): Promise<ReadonlyMap<SetKey, SetState>> {
  const wanted = new Map(SET_KEYS.map((key) => [setDefinition(key, family).name, key]));
  const found = new Map<SetKey, SetState>();
  for await (const set of sets.save(wanted.keys())) {
    const key = wanted.get(set.name);
    if (key === undefined) continue;
    const { type } = setDefinition(key, family);
    if (set.type !== type) {
      throw new Error(
        `ipset ${set.name} has type ${set.type} and must have ${type}: destroy it, or rename what uses it`,
      );
    }
    found.set(key, set);
  }
  return found;
}

export async function readAddresses({ links }: IpvsPort, family: IPFamily): Promise<ReadonlySet<string> | undefined> {
  const addresses = await links.addresses(DEVICE);
  return addresses && new Set([...addresses].filter((one) => isServiceAddress(one, family)));
}

/** One that services of the family can have; the device itself may have a link-local one. */
export function isServiceAddress(address: string, family: IPFamily): boolean {
  return familyOf(address) === family && !address.startsWith("fe80:");
}

/** Both tables that this mode has chains in. */
export async function readTables(rules: RulesPort): Promise<ReadonlyMap<Table, TableState>> {
  if (rules.saveTables !== undefined) return rules.saveTables(TABLES);
  const tables = new Map<Table, TableState>();
  for (const table of TABLES) tables.set(table, await rules.save(table));
  return tables;
}

/** Whether a virtual server that no service wants is ours to delete. */
export type Owned = (server: VirtualServer) => boolean;

interface OwnershipFacts {
  readonly family: IPFamily;
  readonly kernel: Pick<KernelState, "sets" | "addresses">;
  readonly made: { has(key: string): boolean };
  readonly excludeCIDRs: readonly string[];
}

/**
 * Ours is what this process made, and, outside the excluded CIDRs, what another program with our names made before it:
 * servers on addresses of the service device, and those that our sets speak of. All others belong to another program
 * (upstream deletes those too unless they are excluded).
 */
export function ownership({ family, kernel, made, excludeCIDRs }: OwnershipFacts): Owned {
  const isExcluded = inAnyOf(excludeCIDRs.filter(ofFamily(family)));
  return (server) => {
    if (server.family !== family) return false;
    if (made.has(renderServerKey(server))) return true;
    if (isExcluded(server.address)) return false;
    return kernel.addresses?.has(server.address) === true || inSets(kernel.sets, server);
  };
}

/** Nothing on this node can be ours, so a listing is useless. */
export function ownsNothing({
  kernel,
  made,
}: {
  readonly kernel: OwnershipFacts["kernel"];
  readonly made: { readonly size: number };
}): boolean {
  const { sets, addresses } = kernel;
  return (
    made.size === 0 && (addresses?.size ?? 0) === 0 && [...sets.values()].every(({ members }) => members.size === 0)
  );
}

interface RulesState {
  /** `TABLE CHAIN` → the rules of the built-in chains that lead to ours. */
  readonly builtin: ReadonlyMap<string, readonly Rule[]>;
  /** Nat has chains of iptables mode, which serve until ours take over. */
  readonly iptablesModeServes: boolean;
  /** Addresses that the node itself is kept from: so it stays until their virtual servers are gone. */
  readonly barred: readonly BarredAddress[];
}

/** Entries up to which nat is read as a whole rather than the names of its chains first. */
const SMALL = 5000;

/** Both tables are read as a whole, with one process; nat with the many rules of iptables mode chain by chain. */
async function readRules(rules: RulesPort): Promise<RulesState> {
  const { entries = Number.POSITIVE_INFINITY } = (await rules.glance?.("nat")) ?? {};
  const small = entries <= SMALL ? await readTables(rules) : undefined;
  const iptablesModeServes = hasIptablesMode(small?.get("nat")?.chains.keys() ?? (await rules.chains("nat")));
  const onlyFilter = async () => new Map([["filter", await rules.save("filter")] as const]);
  const tables: ReadonlyMap<Table, TableState> =
    small ?? (await (iptablesModeServes ? onlyFilter() : readTables(rules)));
  const builtin = new Map<string, readonly Rule[]>();
  for (const { table, chain } of JUMPS) {
    const saved = tables.get(table);
    const present = saved === undefined ? await rules.list(table, chain) : saved.chains.get(chain)?.rules;
    builtin.set(`${table} ${chain}`, present ?? []);
  }
  const outFilter = tables.get("filter")?.chains.get(IPVS_OUT_FILTER)?.rules ?? [];
  return { builtin, iptablesModeServes, barred: outFilter.flatMap(barredBy) };
}

function barredBy({ matches }: Rule): readonly BarredAddress[] {
  return matches.flatMap((match) => {
    if (match.kind !== "ipvs") return [];
    const { protocol, address, port } = match;
    return [{ protocol, address, port }];
  });
}

function hasIptablesMode(chains: Iterable<string>): boolean {
  return [...chains].some(isGroupChainOfIptablesMode);
}

const ADDRESS_SETS: readonly SetKey[] = [
  "KUBE-CLUSTER-IP",
  "KUBE-EXTERNAL-IP",
  "KUBE-EXTERNAL-IP-LOCAL",
  "KUBE-LOAD-BALANCER",
  "KUBE-NODE-PORT-SCTP-HASH",
];

const PORT_SETS: Readonly<Partial<Record<VirtualServer["protocol"], SetKey>>> = {
  TCP: "KUBE-NODE-PORT-TCP",
  UDP: "KUBE-NODE-PORT-UDP",
};

function inSets(sets: KernelState["sets"], { protocol, address, port }: VirtualServer): boolean {
  const member = `${address},${protocol.toLowerCase()}:${port}`;
  if (ADDRESS_SETS.some((set) => sets.get(set)?.members.has(member))) return true;
  const ports = PORT_SETS[protocol];
  return ports !== undefined && sets.get(ports)?.members.has(String(port)) === true;
}

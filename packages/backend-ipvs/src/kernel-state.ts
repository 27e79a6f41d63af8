import { familyOf } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import type { Rule, SetState, Table, TableState } from "@fairlead/netfilter";
import { TABLES } from "./plan/frame-facts.ts";
import { isGroupChainOfIptablesMode } from "./plan/iptables-mode.ts";
import { JUMPS } from "./plan/jumps.ts";
import { DEVICE } from "./plan/names.ts";
import { SET_KEYS, type SetKey, setDefinition } from "./plan/sets.ts";
import type { IpvsPort, RulesPort } from "./port.ts";

/** What a full sync has to know of the kernel before it writes, virtual servers aside: those are read as a stream. */
export interface KernelState {
  readonly sets: ReadonlyMap<SetKey, SetState>;
  /** The family's addresses on the service device; undefined: there is no such device. */
  readonly addresses: ReadonlySet<string> | undefined;
  readonly rules: RulesState | "as wanted";
}

interface RulesState {
  /** `TABLE CHAIN` → the rules of the built-in chains that lead to ours. */
  readonly builtin: ReadonlyMap<string, readonly Rule[]>;
  /** Nat has chains of iptables mode, which serve until ours take over. */
  readonly iptablesModeServes: boolean;
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

/** Entries up to which nat is read as a whole rather than the names of its chains first. */
const SMALL = 5000;

/** Both tables are read as a whole, with one process; nat with the many rules of iptables mode chain by chain. */
async function readRules(rules: RulesPort): Promise<RulesState> {
  const { entries = Number.POSITIVE_INFINITY } = (await rules.glance?.("nat")) ?? {};
  const small = entries <= SMALL ? await readTables(rules) : undefined;
  const iptablesModeServes = hasIptablesMode(small?.get("nat")?.chains.keys() ?? (await rules.chains("nat")));
  const filterAlone = async () => new Map([["filter", await rules.save("filter")] as const]);
  const tables: ReadonlyMap<Table, TableState> =
    small ?? (await (iptablesModeServes ? filterAlone() : readTables(rules)));
  const builtin = new Map<string, readonly Rule[]>();
  for (const { table, chain } of JUMPS) {
    const saved = tables.get(table);
    const present = saved === undefined ? await rules.list(table, chain) : saved.chains.get(chain)?.rules;
    builtin.set(`${table} ${chain}`, present ?? []);
  }
  return { builtin, iptablesModeServes };
}

/** Both tables that this mode has chains in. */
export async function readTables(rules: RulesPort): Promise<ReadonlyMap<Table, TableState>> {
  if (rules.saveTables !== undefined) return rules.saveTables(TABLES);
  const tables = new Map<Table, TableState>();
  for (const table of TABLES) tables.set(table, await rules.save(table));
  return tables;
}

function hasIptablesMode(chains: Iterable<string>): boolean {
  return [...chains].some(isGroupChainOfIptablesMode);
}

import type { Rule, Table } from "@fairlead/netfilter";
import {
  EXTERNAL_SERVICES,
  NODEPORT_CONTAINER,
  NODEPORT_HOST,
  NODEPORT_NON_LOCAL,
  PORTALS_CONTAINER,
  PORTALS_HOST,
  PROXY_FIREWALL,
  SERVICES,
} from "./names.ts";

/** The tables that this mode has chains in. */
export const TABLES = ["filter", "nat"] as const satisfies readonly Table[];

export type RuleTable = (typeof TABLES)[number];

/** A rule in its chain. Rules of different groups never match the same packet: only a group's own have an order. */
export interface ChainRule {
  readonly table: RuleTable;
  readonly chain: string;
  readonly rule: Rule;
  /** Goes to the chain's top: filter asks about addresses before it asks about node ports. */
  readonly first?: true;
}

/** Chains that no other mode has. */
export const OWN_CHAINS: Readonly<Record<RuleTable, readonly string[]>> = {
  filter: [NODEPORT_NON_LOCAL],
  nat: [PORTALS_CONTAINER, PORTALS_HOST, NODEPORT_CONTAINER, NODEPORT_HOST],
};

/** Every chain that this mode makes and cleanup removes. */
export const CHAINS: Readonly<Record<RuleTable, readonly string[]>> = {
  filter: [...OWN_CHAINS.filter, SERVICES, EXTERNAL_SERVICES, PROXY_FIREWALL],
  nat: OWN_CHAINS.nat,
};

export const BUILTIN_CHAINS: Readonly<Record<RuleTable, readonly string[]>> = {
  filter: ["INPUT", "FORWARD", "OUTPUT"],
  nat: ["PREROUTING", "OUTPUT"],
};

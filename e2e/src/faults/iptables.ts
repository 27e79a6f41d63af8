import type { IPFamily } from "@fairlead/core";
import type { Argv } from "@fairlead/kernel";
import { PLAIN_TOOL } from "../support/plain-tool.ts";
import type { ByHand } from "./by-hand.ts";

/** Empties a table of iptables, or one chain of it. */
export function flushArgv(family: IPFamily, table: string, chain?: string): Argv {
  return [PLAIN_TOOL[family], "-t", table, "-F", ...(chain === undefined ? [] : [chain])];
}

/** Deletes the chains of a table that nothing refers to any more. */
export function deleteChainsArgv(family: IPFamily, table: string): Argv {
  return [PLAIN_TOOL[family], "-t", table, "-X"];
}

export const iptablesByHand: ByHand = {
  noServices: (family) => flushArgv(family, "nat", "KUBE-SERVICES"),
  noMasquerade: (family) => flushArgv(family, "nat", "KUBE-POSTROUTING"),
  noRefusal: (family) => flushArgv(family, "filter", "KUBE-SERVICES"),
  noSourceRanges: (family) => flushArgv(family, "filter", "KUBE-PROXY-FIREWALL"),
  leadAway: (family, from, to) => {
    const rule = ["-d", from, "-p", "tcp", "--dport", "80", "-j", "DNAT", "--to-destination", to];
    return [PLAIN_TOOL[family], "-t", "nat", "-I", "KUBE-SERVICES", ...rule];
  },
};

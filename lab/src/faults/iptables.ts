import type { IPFamily } from "@fairlead/core";
import type { Argv } from "@fairlead/kernel";
import { PLAIN_TOOL } from "../support/plain-tool.ts";
import type { ByHand } from "./by-hand.ts";

/** Empties a table of iptables, or one chain of it. */
export function flushArgv(family: IPFamily, table: string, chain?: string): Argv {
  return [PLAIN_TOOL[family], "-t", table, "-F", ...(chain === undefined ? [] : [chain])];
}

/** Deletes the chains of a table that nothing refers to anymore. */
export function deleteChainsArgv(family: IPFamily, table: string): Argv {
  return [PLAIN_TOOL[family], "-t", table, "-X"];
}

/** Deletes the first rule of a service's own chain that leads to an endpoint. */
const ENDPOINT_DELETED = String.raw`
  rule=$("$1-save" -t nat | grep -m 1 -- "^-A KUBE-SVC-.*\"$2 -> ") || exit 0
  printf '*nat\n-D%s\nCOMMIT\n' "$(echo "$rule" | cut -c3-)" | "$1-restore" --noflush`;

export const iptablesByHand: ByHand = {
  noServices: (family) => flushArgv(family, "nat", "KUBE-SERVICES"),
  noMasquerade: (family) => flushArgv(family, "nat", "KUBE-POSTROUTING"),
  noRefusal: (family) => flushArgv(family, "filter", "KUBE-SERVICES"),
  noSourceRanges: (family) => flushArgv(family, "filter", "KUBE-PROXY-FIREWALL"),
  noService: (family, service) => ["sh", "-c", ENDPOINT_DELETED, "sh", PLAIN_TOOL[family], service],
  leadAway: (family, from, to) => {
    const rule = ["-d", from, "-p", "tcp", "--dport", "80", "-j", "DNAT", "--to-destination", to];
    return [PLAIN_TOOL[family], "-t", "nat", "-I", "KUBE-SERVICES", ...rule];
  },
};

import { readFile } from "node:fs/promises";
import type { IPFamily } from "../family.ts";
import { createGlance, FEW_ENTRIES } from "../iptables/glance.ts";

/** Tables that there are: to ask about another would make the kernel create it. */
const TABLE_NAMES = { IPv4: "/proc/self/net/ip_tables_names", IPv6: "/proc/self/net/ip6_tables_names" } as const;
const TABLES = ["filter", "nat", "mangle", "raw", "security"] as const;

/**
 * What asks for something that is different after any change of a family's legacy rules in this network namespace,
 * whatever they have counted. It gives undefined where it cannot be told: the kernel does not say it, or a table is
 * large.
 */
export function createLegacyState(family: IPFamily): () => Promise<string | undefined> {
  const glance = createGlance(family, "legacy");
  return async () => {
    const names = (await readFile(TABLE_NAMES[family], "utf8").catch(() => undefined))?.split("\n");
    if (names === undefined) return undefined;
    const states: string[] = [];
    for (const table of TABLES.filter((one) => names.includes(one))) {
      const { state, entries = 0 } = (await glance(table)) ?? {};
      if (state === undefined || entries > FEW_ENTRIES) return undefined;
      states.push(`${table} ${state}`);
    }
    return states.join(", ");
  };
}

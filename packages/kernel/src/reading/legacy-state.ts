import { readFile } from "node:fs/promises";
import type { IPFamily } from "../family.ts";
import { createGlance, FEW_ENTRIES } from "../iptables/glance.ts";
import { LEGACY_TABLE_NAMES } from "../iptables/tables-there.ts";

const TABLES = ["filter", "nat", "mangle", "raw", "security"] as const;

/**
 * What asks for something that is different after any change of a family's legacy rules in this network namespace,
 * whatever they have counted. It gives undefined where it cannot be told: the kernel does not say it, or a table is
 * large.
 */
export function createLegacyState(family: IPFamily): () => Promise<string | undefined> {
  const glance = createGlance(family, "legacy");
  return async () => {
    const names = (await readFile(LEGACY_TABLE_NAMES[family], "utf8").catch(() => undefined))?.split("\n");
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

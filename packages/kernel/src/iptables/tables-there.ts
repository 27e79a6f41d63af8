import { readFile } from "node:fs/promises";
import { errorCode } from "@fairlead/base";
import type { IPFamily } from "../family.ts";
import { isNftTableThere } from "../nftables/table-there.ts";
import type { Variant } from "./variant.ts";

/** As the tools call them; the legacy variant's file has a line for each that another program has used. */
const TABLES = ["nat", "filter", "mangle", "raw", "security"] as const;
/** To ask the tools about a table would make the kernel create it. */
export const LEGACY_TABLE_NAMES = {
  IPv4: "/proc/self/net/ip_tables_names",
  IPv6: "/proc/self/net/ip6_tables_names",
} as const;

/** Whether a variant of iptables has any table; undefined: it cannot be told without the tools. */
export type TablesThere = (family: IPFamily, variant: Variant) => Promise<boolean | undefined>;

/** `TablesThere` of the network namespace of this process, without a process of its own. */
export const areTablesThere: TablesThere = (family, variant) =>
  variant === "nft" ? isAnyNftTableThere(family) : isAnyLegacyTableThere(family);

async function isAnyNftTableThere(family: IPFamily): Promise<boolean | undefined> {
  const found = await Promise.all(TABLES.map((table) => isNftTableThere(family, table)));
  if (found.includes(true)) return true;
  return found.includes(undefined) ? undefined : false;
}

async function isAnyLegacyTableThere(family: IPFamily): Promise<boolean | undefined> {
  const loaded = await loadedLegacyTables(family).catch(() => undefined);
  return loaded && loaded.length > 0;
}

/**
 * The legacy tables that are in use in the network namespace of this process.
 *
 * @throws Error when the kernel does not say
 */
export async function loadedLegacyTables(family: IPFamily): Promise<readonly string[]> {
  try {
    const names = (await readFile(LEGACY_TABLE_NAMES[family], "utf8")).trim();
    return names === "" ? [] : names.split("\n");
  } catch (error) {
    // A kernel without the legacy tables, or with their module not loaded.
    if (errorCode(error) === "ENOENT") return [];
    throw error;
  }
}

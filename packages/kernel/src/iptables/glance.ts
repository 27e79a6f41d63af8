import { createHash } from "node:crypto";
import type { IptablesPort, Table, TableGlance } from "@fairlead/netfilter";
import type { IPFamily } from "../family.ts";
import { openNetfilterSocket } from "../netlink/socket.ts";
import { generation } from "./generation.ts";
import { entryStarts, openLegacyTables } from "./legacy-tables.ts";
import type { Variant } from "./variant.ts";

/**
 * Of a legacy table of at most 5,000 entries the state is another one after any change, of a larger one after one of
 * number or size; on the nft variant after any, in whatever table. Undefined: this kernel does not say, or not to this
 * process.
 */
export type Glance = NonNullable<IptablesPort["glance"]>;

/** Asks in the network namespace of this process, by a system call or two, however large the table is. */
export function createGlance(family: IPFamily, variant: Variant): Glance {
  const open = variant === "nft" ? openGeneration : () => openInfo(family);
  let opened: ReturnType<typeof open> | undefined;
  return async (table) => {
    try {
      opened ??= open();
      return (await opened)(table);
    } catch {
      return undefined;
    }
  };
}

type Ask = (table: Table) => Promise<TableGlance> | TableGlance;

/** Its generation counts transactions of all tables and families of the namespace. */
async function openGeneration(): Promise<Ask> {
  const socket = await openNetfilterSocket();
  return async () => ({ state: String(await generation(socket)) });
}

/** In struct ipt_entry and ip6t_entry: the counters of packets and bytes. */
const COUNTERS_AT = { IPv4: 96, IPv6: 152 } as const;
const COUNTER_BYTES = 16;

/** Entries up to which all of them are read: a megabyte or two. */
export const FEW_ENTRIES = 5000;

async function openInfo(family: IPFamily): Promise<Ask> {
  const tables = await openLegacyTables(family);
  return (table) => {
    const { entries, bytes } = tables.size(table);
    if (entries > FEW_ENTRIES) return { state: `${entries} ${bytes}`, entries };
    return { state: digest(tables.entries(table, bytes), family), entries };
  };
}

/** Of the rules without what they have counted. */
function digest(entries: Buffer, family: IPFamily): string {
  for (const at of entryStarts(entries, family)) {
    const counters = at + COUNTERS_AT[family];
    entries.fill(0, counters, counters + COUNTER_BYTES);
  }
  return createHash("sha256").update(entries).digest("base64");
}

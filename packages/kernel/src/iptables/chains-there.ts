import { BUILTIN_CHAINS, type Table } from "@fairlead/netfilter";
import { NFT_FAMILY, nftNumbers } from "@fairlead/netfilter/nft";
import type { IPFamily } from "../family.ts";
import { dump } from "../netlink/dump.ts";
import { openNetfilterSocket } from "../netlink/socket.ts";
import { attributes } from "../nftables/listing.ts";
import { encodeGet } from "../nftables/requests.ts";
import { isNftChainThere } from "../nftables/table-there.ts";
import { FEW_ENTRIES } from "./glance.ts";
import { chainNames, type LegacyTables, openLegacyTables } from "./legacy-tables.ts";
import { loadedLegacyTables } from "./tables-there.ts";
import type { Variant } from "./variant.ts";

const { CHAIN } = nftNumbers;

/**
 * Which chains there are, without a process: a start that looks for what other modes left asks 14 times. Undefined:
 * the kernel does not say, or not to this process, or the table is one of the legacy variant with more than
 * `FEW_ENTRIES`.
 */
export interface ChainsThere {
  /** Names, built-in ones included. */
  all(table: Table): Promise<ReadonlySet<string> | undefined>;
  /** Whether there is such a chain; undefined: it cannot be said. */
  has(table: Table, chain: string): Promise<boolean | undefined>;
}

/** Asks in the network namespace of this process. */
export function createChainsThere(family: IPFamily, variant: Variant): ChainsThere {
  const known = <T>(asked: Promise<T>): Promise<T | undefined> => asked.catch(() => undefined);
  if (variant === "nft") {
    return {
      all: (table) => known(nftChains(family, table)),
      has: (table, chain) => isNftChainThere(family, table, chain),
    };
  }
  // Its socket stays open, and there is one of it.
  let opened: ReturnType<typeof openLegacyTables> | undefined;
  const all = (table: Table) => known(legacyChains(family, table, () => (opened ??= openLegacyTables(family))));
  return { all, has: async (table, chain) => (await all(table))?.has(chain) };
}

async function nftChains(family: IPFamily, table: Table): Promise<ReadonlySet<string>> {
  const names = new Set(BUILTIN_CHAINS[table]);
  const socket = await openNetfilterSocket();
  try {
    const interrupted = await dump(socket, encodeGet("getChain", NFT_FAMILY[family]), "chains", (bytes, message) => {
      const chain = attributes(bytes, message);
      // Kernels list the chains of all tables of the family.
      if (chain.text(CHAIN.table) === table) names.add(chain.text(CHAIN.name) ?? "");
    });
    if (interrupted) throw new Error("the chains changed while they were listed");
    return names;
  } finally {
    await socket.close();
  }
}

async function legacyChains(
  family: IPFamily,
  table: Table,
  open: () => Promise<LegacyTables>,
): Promise<ReadonlySet<string> | undefined> {
  const names = new Set(BUILTIN_CHAINS[table]);
  if (!(await loadedLegacyTables(family)).includes(table)) return names;
  const tables = await open();
  const { entries, bytes } = tables.size(table);
  if (entries > FEW_ENTRIES) return undefined;
  for (const name of chainNames(tables.entries(table, bytes), family)) names.add(name);
  return names;
}

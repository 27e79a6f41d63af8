import { hashedName, hashedNeed } from "./hashed.ts";
import type { Pool } from "./placement.ts";
import { type PoolKind, poolName, poolNeed, type PoolChain } from "./pools.ts";
import { stickyWay } from "./sticky.ts";

/** The map that a pool's slots are elements of. */
export function mapOf(kind: PoolKind, { size, hashed }: Pool): string {
  return hashed ? hashedName(kind, size) : poolName(kind, size);
}

/** How a frontend's packets get to a pool: by a hash of the client, by what is remembered of it, or by chance. */
export function wayTo(kind: PoolKind, pool: Pool, affinitySeconds: number | undefined): PoolChain {
  const { size, hashed } = pool;
  if (affinitySeconds !== undefined) return stickyWay(kind, size, affinitySeconds);
  return { chain: mapOf(kind, pool), needs: [hashed ? hashedNeed(kind, size) : poolNeed(kind, size)] };
}

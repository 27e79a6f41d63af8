import { hashedName, hashedNeed } from "./hashed.ts";
import type { Pool } from "./placement.ts";
import { type PoolChain, type PoolKind, poolName, poolNeed } from "./pools.ts";
import { stickyChain } from "./sticky.ts";

/** The map that a pool's slots are elements of. */
export function poolMapName(kind: PoolKind, { size, hashed }: Pool): string {
  return hashed ? hashedName(kind, size) : poolName(kind, size);
}

/** How a frontend's packets get to a pool: by a hash of the client, by what is remembered of it, or by chance. */
export function poolChain(kind: PoolKind, pool: Pool, affinitySeconds: number | undefined): PoolChain {
  const { size, hashed } = pool;
  if (affinitySeconds !== undefined) return stickyChain(kind, size, affinitySeconds);
  return { chain: poolMapName(kind, pool), needs: [hashed ? hashedNeed(kind, size) : poolNeed(kind, size)] };
}

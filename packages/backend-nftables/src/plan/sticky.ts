import type { Pool } from "./placement.ts";
import { type Need, type PoolKind, poolName, poolNeed } from "./pools.ts";

/** @returns the chain that leads to a pool's endpoints, and what has to be there for it */
export function leadTo(kind: PoolKind, { size }: Pool): { readonly chain: string; readonly needs: readonly Need[] } {
  return { chain: poolName(kind, size), needs: [poolNeed(kind, size)] };
}

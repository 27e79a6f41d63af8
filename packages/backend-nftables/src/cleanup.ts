import type { IPFamily } from "@fairlead/core";
import { NftBatch } from "@fairlead/netfilter/nft";
import { TABLE } from "./plan/names.ts";
import type { NftablesPort } from "./port.ts";
import { isCode } from "./stale-chains.ts";

/**
 * Removes what this mode, or kube-proxy in nftables mode, has made in one family: both have all of it in one table of
 * the same name.
 *
 * @returns whether there was anything
 * @throws Error when the kernel refuses it
 */
export async function removeNftablesMode(port: Pick<NftablesPort, "commit">, family: IPFamily): Promise<boolean> {
  try {
    await port.commit(new NftBatch(family === "IPv4" ? "ip" : "ip6", TABLE).deleteTable());
    return true;
  } catch (error) {
    if (isCode(error, "ENOENT")) return false;
    throw error;
  }
}

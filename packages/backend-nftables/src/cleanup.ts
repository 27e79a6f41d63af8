import { errorCode } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import { NFT_FAMILY, NftBatch } from "@fairlead/netfilter/nft";
import { tableName } from "./plan/names.ts";
import type { NftablesPort } from "./port.ts";

/**
 * Removes what this mode, or kube-proxy in nftables mode, has made in one family: both have all of it in one table of
 * the same name. With a service proxy name it is the table of that one only.
 *
 * @returns whether there was anything
 * @throws Error when the kernel refuses it
 */
export async function removeNftablesMode(
  port: Pick<NftablesPort, "commit">,
  family: IPFamily,
  serviceProxyName = "",
): Promise<boolean> {
  try {
    await port.commit(new NftBatch(NFT_FAMILY[family], tableName(serviceProxyName)).deleteTable());
    return true;
  } catch (error) {
    if (errorCode(error) === "ENOENT") return false;
    throw error;
  }
}

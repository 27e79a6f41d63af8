import type { IPFamily } from "../family.ts";
import { addressFamilies } from "../netlink/address-families.ts";
import { attribute } from "../netlink/attributes.ts";
import { decodeReplies, encodeRequest, flags } from "../netlink/messages.ts";
import { datagramSize, openNetfilterSocket } from "../netlink/socket.ts";

/** linux/netfilter/nf_tables.h: NFNL_SUBSYS_NFTABLES, NFT_MSG_GETTABLE, NFTA_TABLE_NAME. */
const getTable = (10 << 8) | 1;
const tableName = 1;
const ENOENT = 2;

/**
 * Whether nf_tables has a table of the family `ip` or `ip6`, in the network namespace of this process. One system call,
 * whatever else is there: the nft tool reads every rule before it lists tables, a minute and more beside 10,000
 * services' rules.
 *
 * @returns undefined: this kernel does not say, or not to this process
 */
export async function isNftTableThere(family: IPFamily, name: string): Promise<boolean | undefined> {
  try {
    const socket = await openNetfilterSocket();
    try {
      const attributes = attribute(tableName, Buffer.from(`${name}\0`));
      const addressFamily = addressFamilies[family];
      await socket.send(encodeRequest({ type: getTable, flags: flags.request, addressFamily, attributes }));
      for (const reply of decodeReplies(await socket.receive(Buffer.alloc(datagramSize)))) {
        if (reply.kind === "data") return true;
        if (reply.kind === "result" && reply.errno === ENOENT) return false;
      }
    } finally {
      await socket.close();
    }
  } catch {
    // Whoever asks has another way.
  }
  return undefined;
}

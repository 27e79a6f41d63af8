import { NFT_FAMILY } from "@fairlead/netfilter/nft";
import type { IPFamily } from "../family.ts";
import { decodeReplies } from "../netlink/messages.ts";
import { DATAGRAM_SIZE, openNetfilterSocket } from "../netlink/socket.ts";
import { encodeGet, encodeGetChain } from "./requests.ts";

const ENOENT = 2;

/**
 * Whether nf_tables has a table of the family `ip` or `ip6`, in the network namespace of this process. One system call,
 * whatever else is there: the nft tool reads every rule before it lists tables, a minute and more alongside 10,000
 * services' rules.
 *
 * @returns undefined: this kernel does not say, or not to this process
 */
export async function isNftTableThere(family: IPFamily, name: string): Promise<boolean | undefined> {
  return isNftObjectThere(encodeGet("getTable", NFT_FAMILY[family], name, false));
}

/** The same of one chain of a table; a table that is not there has none. */
export async function isNftChainThere(family: IPFamily, table: string, name: string): Promise<boolean | undefined> {
  return isNftObjectThere(encodeGetChain(NFT_FAMILY[family], table, name));
}

async function isNftObjectThere(request: Buffer): Promise<boolean | undefined> {
  try {
    const socket = await openNetfilterSocket();
    try {
      await socket.send(request);
      for (const reply of decodeReplies(await socket.receive(Buffer.alloc(DATAGRAM_SIZE)))) {
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

import type { NftBatch } from "@fairlead/netfilter/nft";
import type { NetlinkSocket } from "../netlink/socket.ts";
import { NftablesError } from "./error.ts";
import { exchange } from "./exchange.ts";

/**
 * Sends a batch. The kernel answers its last message once all is committed, and each message that it refused.
 *
 * @param bytes of the finished batch
 * @throws NftablesError for the first message that was refused; nothing has changed then
 */
export async function send(socket: NetlinkSocket, batch: NftBatch, bytes: Buffer): Promise<void> {
  for (const { reply } of await exchange(socket, bytes)) {
    if (reply.kind !== "result" || reply.errno === 0) continue;
    const { sequence, errno, text } = reply;
    throw new NftablesError(batch, batch.objectOf(sequence), errno, text);
  }
}

import { errorCode } from "@fairlead/base";
import type { NftBatch } from "@fairlead/netfilter/nft";
import type { TransactionSocket } from "../netlink/socket.ts";
import { answerOfCommitLost, errnoOf, NftablesError } from "./error.ts";
import { AnswersLost, exchange, type Received } from "./exchange.ts";

/** What the kernel takes alongside a datagram's own bytes. */
export const OVERHEAD = 4096;

/**
 * Sends a batch. The kernel answers its last message once all is committed, and each message that it refused.
 *
 * @param bytes of the finished batch
 * @throws NftablesError for the first message that was refused; nothing has changed then
 */
export async function send(socket: TransactionSocket, batch: NftBatch, bytes: Buffer): Promise<void> {
  for (const { reply } of await answers(socket, batch, bytes)) {
    if (reply.kind !== "result" || reply.errno === 0) continue;
    const { sequence, errno, text } = reply;
    throw new NftablesError(batch, batch.objectOf(sequence), errno, text);
  }
}

async function answers(socket: TransactionSocket, batch: NftBatch, bytes: Buffer): Promise<readonly Received[]> {
  const room = socket.makeRoom(bytes.length + OVERHEAD) - OVERHEAD;
  try {
    return await exchange(socket, bytes);
  } catch (error) {
    // Where very many messages are refused, the first ones are told, and that one is enough.
    if (error instanceof AnswersLost && error.received.some(isRefusal)) return error.received;

    throw explained(error, batch, `it has ${bytes.length} bytes; this user namespace allows at most ${room}`);
  }
}

function isRefusal({ reply }: Received): boolean {
  return reply.kind === "result" && reply.errno !== 0;
}

/** What went wrong, with what it was about. */
function explained(error: unknown, batch: NftBatch, tooLong: string): unknown {
  if (error instanceof AnswersLost) return answerOfCommitLost(batch);
  const code = errorCode(error);
  if (code === undefined) return error;
  const text = code === "EMSGSIZE" ? `${tooLong} (net.core.wmem_max)` : undefined;
  return new NftablesError(batch, undefined, errnoOf(code), text);
}

import { type NftBatch, nftNumbers } from "@fairlead/netfilter/nft";
import { findAttribute } from "../netlink/attributes.ts";
import { type OpenTransactions, openTransactionSocket, type TransactionSocket } from "../netlink/socket.ts";
import type { NftablesClient } from "./client.ts";
import { exchange } from "./exchange.ts";
import { lookUp, readTable } from "./read.ts";
import { encodeGet } from "./requests.ts";
import { send } from "./send.ts";

export interface NftablesOptions {
  /** How netlink is reached. Default: in the network namespace of this process. */
  readonly open?: OpenTransactions;
}

/** What the kernel takes beside a datagram's own bytes. */
const OVERHEAD = 4096;

/**
 * Opens nf_tables by netlink; `nft` is not needed. What is asked for at once is done one after the other.
 *
 * @throws Error when koffi has no binary for this machine; NetlinkError when the kernel has no nfnetlink
 */
export async function openNftables({ open = openTransactionSocket }: NftablesOptions = {}): Promise<NftablesClient> {
  const socket = await open();
  const inTurn = queue();
  const sendWhole = (batch: NftBatch, bytes: Buffer) => {
    socket.makeRoom(bytes.length + OVERHEAD);
    return send(socket, batch, bytes);
  };
  return {
    commit: (batch) => inTurn(() => sendWhole(batch, batch.finish())),
    check: (batch) => inTurn(() => sendWhole(batch, batch.finishAsCheck())),
    roomFor: (wanted) => socket.makeRoom(wanted + OVERHEAD) - OVERHEAD,
    generation: () => inTurn(() => generationOf(socket)),
    table: (family, name) => inTurn(() => readTable(socket, family, name)),
    elements: (family, table, set, keys) => inTurn(() => lookUp(socket, family, table, set, keys)),
    close: () => inTurn(() => socket.close()),
  };
}

async function generationOf(socket: TransactionSocket): Promise<number> {
  for (const { reply, bytes } of await exchange(socket, encodeGet("getGeneration", "ip", undefined, false))) {
    const id = reply.kind === "data" ? findAttribute(bytes, reply.attributes, nftNumbers.GENERATION.id) : undefined;
    if (id !== undefined) return bytes.readUInt32BE(id.start);
  }
  throw new Error("netlink: no answer about the generation of nf_tables");
}

/** One socket has one conversation. */
function queue(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const result = last.then(work);
    last = result.catch(() => {});
    return result;
  };
}

import { systemClock, type Timers } from "@fairlead/base";
import type { NftBatch } from "@fairlead/netfilter/nft";
import { type OpenListening, openListening } from "../netlink/listening.ts";
import { type OpenTransactions, openTransactionSocket } from "../netlink/socket.ts";
import type { NftablesClient } from "./client.ts";
import { counted } from "./counted.ts";
import { lookUp } from "./elements.ts";
import { generationOf } from "./generation.ts";
import { type Listener, watch } from "./listener.ts";
import { quietly } from "./quiet.ts";
import { readSets, readTable } from "./read.ts";
import { OVERHEAD, send } from "./send.ts";

/** How nf_tables is reached. */
export interface NftablesOptions {
  /** How netlink is reached. Default: in the network namespace of this process. */
  readonly open?: OpenTransactions;
  /** How the kernel is listened to. Default: in the network namespace of this process. */
  readonly listen?: OpenListening;
  /** Timers of its waits; default: those of the process. */
  readonly timers?: Timers;
}

/** Bytes of a transaction from which on nothing listens meanwhile. */
const QUIET = 1 << 16;

/**
 * Opens nf_tables by netlink; `nft` is not needed. What is asked for at once is done one after the other.
 *
 * @throws NativeCodeError when there is no compiled code for this machine; NetlinkError when the kernel has no
 *   nfnetlink
 */
export async function openNftables(options: NftablesOptions = {}): Promise<NftablesClient> {
  const { open = openTransactionSocket, listen = openListening, timers = systemClock } = options;
  const socket = await open();
  const inTurn = queue();
  const listeners = new Set<Listener>();
  let ownPort: number | undefined;
  const generation = async () => {
    const reported = await generationOf(socket);
    ownPort = reported.port;
    return reported.generation;
  };
  const sendWhole = (batch: NftBatch, bytes: Buffer) => {
    const work = () => send(socket, batch, bytes);
    return bytes.length > QUIET && listeners.size > 0 ? quietly(listeners, generation, work) : work();
  };
  return {
    commit: (batch) => inTurn(() => sendWhole(batch, batch.finish())),
    check: (batch) => inTurn(() => send(socket, batch, batch.finishAsCheck())),
    roomFor: (wanted) => socket.makeRoom(wanted + OVERHEAD) - OVERHEAD,
    generation: () => inTurn(generation),
    table: (family, name) => inTurn(() => readTable(socket, family, name)),
    sets: (family, table, wanted) => inTurn(() => readSets(socket, family, table, wanted)),
    elements: (family, table, set, keys) => inTurn(() => lookUp(socket, family, table, set, keys)),
    counted: (family, table, chain) => inTurn(() => counted(socket, family, table, chain)),
    watch: (wanted) =>
      watch({ listen, timers, listeners, ownPort: () => ownPort, generation: () => inTurn(generation) }, wanted),
    close: () => inTurn(() => socket.close()),
  };
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

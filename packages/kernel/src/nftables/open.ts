/** The nftables client: transactions and listings by netlink. */

import { systemClock, type Timers } from "@fairlead/base";
import type { NftBatch, NftFamily, NftSet, NftTable } from "@fairlead/netfilter/nft";
import { type OpenListening, openListening } from "../netlink/listening.ts";
import { type OpenTransactions, openTransactionSocket } from "../netlink/socket.ts";
import { generationOf, OVERHEAD, send } from "./exchange.ts";
import { counted, readSets, readTable } from "./read.ts";
import { type Listener, type NftablesNews, type NftablesWatchOptions, watch } from "./watch.ts";

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
    counted: (family, table, chain) => inTurn(() => counted(socket, family, table, chain)),
    watch: (wanted) =>
      watch({ listen, timers, listeners, ownPort: () => ownPort, generation: () => inTurn(generation) }, wanted),
    close: () => inTurn(() => socket.close()),
  };
}

/** Tables of nf_tables in one network namespace, by netlink. */
export interface NftablesClient {
  /**
   * Carries a transaction out, all of it or nothing.
   *
   * @throws NftablesError when the kernel refuses it: nothing has changed then; with the code ENOBUFS the answer was
   *   lost, and it may have been carried out
   */
  commit(batch: NftBatch): Promise<void>;
  /**
   * Has the kernel check a transaction without carrying it out.
   *
   * @throws NftablesError when it would refuse it
   */
  check(batch: NftBatch): Promise<void>;
  /**
   * How many bytes a transaction can have: in a user namespace not as many as one likes.
   *
   * @param wanted bytes
   */
  roomFor(wanted: number): number;
  /** A number that every transaction in this namespace raises, of any program. */
  generation(): Promise<number>;
  /**
   * A whole table; what it costs grows with the square of its largest set.
   *
   * @returns undefined when there is no such table
   * @throws UnreadableNft when it has what is not known here
   */
  table(family: NftFamily, name: string): Promise<NftTable | undefined>;
  /**
   * Some sets of a table with their elements, such as those that packets fill: only these elements are read.
   *
   * @returns by name, without those of types that are not known here; none where there is no such table
   */
  sets(
    family: NftFamily,
    table: string,
    wanted: (set: Omit<NftSet, "elements">) => boolean,
  ): Promise<ReadonlyMap<string, NftSet>>;
  /**
   * The packets that the rules of a chain have counted since they were written; the cost is that of the chain.
   *
   * @returns undefined: there is no such chain, or it has no rules
   */
  counted(family: NftFamily, table: string, chain: string): Promise<number | undefined>;
  /**
   * What other programs do in this namespace from the first step of the iteration on, until the signal aborts; own
   * transactions are not reported. It makes the transactions of all programs dearer: a caller that has a whole table to
   * write does that first.
   */
  watch(options: NftablesWatchOptions): AsyncIterable<NftablesNews>;
  /** Closes the sockets; calls after that fail. */
  close(): Promise<void>;
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

/**
 * Carries out a large transaction while this process does not listen: the kernel would make a message of each element
 * (0.3 s become 1.9 s). The generation shows whether another program did anything meanwhile; if so, its news is
 * reported as lost.
 */
async function quietly(
  listeners: ReadonlySet<Listener>,
  generation: () => Promise<number>,
  work: () => Promise<void>,
): Promise<void> {
  let expected = await generation();
  for (const listener of listeners) listener.rest();
  try {
    await work();
    expected += 1;
  } finally {
    for (const listener of listeners) listener.resume();
    const unexpected = (await generation()) !== expected;
    if (unexpected) for (const listener of listeners) listener.lose();
  }
}

/** Follows changes of other writers to nftables' tables. */

import { sleep, slices, type Timers } from "@fairlead/base";
import { Attributes } from "@fairlead/netfilter/netlink";
import { FAMILY_NUMBERS, type NftFamily, nftNumbers } from "@fairlead/netfilter/nft";
import {
  GROUPS,
  type ListeningSocket,
  LONGEST_MESSAGE,
  type OpenListening,
  receiveOrLost,
} from "../netlink/listening.ts";

/**
 * transaction: another process's. lost: the kernel had more to report than was read in time, or this process did not
 * listen for a moment, so that anything may have happened.
 */
export type NftablesNews =
  | {
      readonly kind: "transaction";
      readonly generation: number;
      /** The process that sent it: its number in the first namespace of processes, and the name of the thread. */
      readonly process: { readonly id: number; readonly name: string };
      /** Tables of the families ip and ip6 in which something was changed. */
      readonly tables: readonly TouchedTable[];
    }
  | {
      readonly kind: "lost";
      /** Tables named by what was read of transactions that were not reported whole. */
      readonly tables: readonly TouchedTable[];
    };

/** A table that a transaction touched. */
export interface TouchedTable {
  /** The table's family. */
  readonly family: NftFamily;
  /** The table's name. */
  readonly name: string;
}

/** Which transactions are reported, and for how long. */
export interface NftablesWatchOptions {
  /** Ends the iteration. */
  readonly signal: AbortSignal;
  /** Names of tables: transactions that touch none of them are not reported. Default: all. */
  readonly tables?: readonly string[];
  /** Called once it listens: from then on nothing happens that is not reported. */
  readonly onListening?: () => void;
  /** Called when listening ended by an error; it begins again, and what may have been missed is reported as lost. */
  readonly onProblem?: (error: unknown) => void;
}

/** Whether a watch of these tables reports it. */
export function concerns(news: NftablesNews, tables: readonly string[] | undefined): boolean {
  return tables === undefined || news.kind === "lost" || news.tables.some(({ name }) => tables.includes(name));
}

/** A watcher, on a socket of its own. */
export class Listener {
  readonly #socket: ListeningSocket;
  readonly #reader: NewsReader;
  readonly #room = Buffer.alloc(LONGEST_MESSAGE);

  constructor(socket: ListeningSocket, ownPort: () => number | undefined) {
    this.#socket = socket;
    this.#reader = new NewsReader(ownPort);
  }

  /** Reported as lost next. */
  lose(): void {
    this.#reader.lose();
  }

  /** Does not listen during so many changes that their messages would cost more than the changes. */
  rest(): void {
    this.#socket.leave();
  }

  resume(): void {
    this.#socket.join();
  }

  /** What the kernel has reported until now, in turns. */
  async *news(): AsyncGenerator<NftablesNews, void, void> {
    const yielding = slices();
    for (let bytes = this.#receive(); bytes !== undefined; bytes = this.#receive()) {
      yield* this.#reader.read(bytes);
      await yielding();
    }
    yield* this.#reader.end();
  }

  close(): void {
    this.#socket.close();
  }

  #receive(): Buffer | undefined {
    const bytes = receiveOrLost(this.#socket, this.#room);
    if (bytes !== "lost") return bytes;
    this.lose();
    return Buffer.alloc(0);
  }
}

interface Surroundings {
  readonly listen: OpenListening;
  readonly timers: Timers;
  /** The number of the socket of own transactions, once it is known. */
  readonly ownPort: () => number | undefined;
  readonly generation: () => Promise<number>;
  /** The watchers that have to be quiet during large own transactions. */
  readonly listeners: Set<Listener>;
}

/** Milliseconds until listening is tried again after an error. */
const RESTART_MS = 1_000;

/** `NftablesClient.watch` */
export async function* watch(
  around: Surroundings,
  options: NftablesWatchOptions,
): AsyncGenerator<NftablesNews, void, void> {
  const { signal, onProblem = () => {}, tables } = options;
  for (let missed = false; !signal.aborted; missed = true) {
    try {
      for await (const news of listenOnce(around, options, missed)) if (concerns(news, tables)) yield news;
    } catch (error) {
      onProblem(error);
      await sleep(around.timers, RESTART_MS, signal);
    }
  }
}

/** Milliseconds between two checks for messages of the kernel; each is a system call. */
const PAUSE_MS = 100;

async function* listenOnce(
  { listen, listeners, ownPort, generation, timers }: Surroundings,
  { signal, onListening = () => {} }: NftablesWatchOptions,
  missed: boolean,
): AsyncGenerator<NftablesNews, void, void> {
  const listener = new Listener(await listen(GROUPS.nftables), ownPort);
  try {
    listener.resume();
    listeners.add(listener);
    if (missed) listener.lose();
    // The answer has the number of the socket of own transactions, which distinguishes them from others.
    await generation();
    onListening();
    while (!signal.aborted) {
      yield* listener.news();
      await sleep(timers, PAUSE_MS, signal);
    }
  } finally {
    listeners.delete(listener);
    listener.close();
  }
}

const { GENERATION, MESSAGES, SUBSYSTEM, TABLE } = nftNumbers;

/** nlmsghdr and nfgenmsg. */
const HEADER = 20;
/** In nlmsghdr: the socket whose request caused the message. */
const PORT_AT = 12;

const FAMILY_OF_NUMBER = new Map<number, NftFamily>([
  [FAMILY_NUMBERS.ip, "ip"],
  [FAMILY_NUMBERS.ip6, "ip6"],
]);

/**
 * Puts transactions together from what the kernel reports: a message for each object and each element, and at the end
 * of a transaction its generation.
 */
class NewsReader {
  readonly #own: () => number | undefined;
  #touched = new Map<string, TouchedTable>();
  /** Something was not reported: the transaction that is being read has no beginning, or will have no end. */
  #gap = false;

  /** @param own the number of the socket whose transactions the reader skips */
  constructor(own: () => number | undefined) {
    this.#own = own;
  }

  /** The transactions of others that end in this datagram. */
  *read(bytes: Buffer): Generator<NftablesNews, void, void> {
    for (let at = 0; at + HEADER <= bytes.length; ) {
      const length = bytes.readUInt32LE(at);
      if (length < HEADER || at + length > bytes.length) return;
      const news = this.#message(bytes, at, at + length);
      if (news !== undefined) yield news;
      at += (length + 3) & ~3;
    }
  }

  /** More happened than was reported. */
  lose(): void {
    this.#gap = true;
  }

  /** Nothing more is there to be read now: the end of what was cut off will not come. */
  *end(): Generator<NftablesNews, void, void> {
    if (this.#gap) yield this.#lost();
  }

  #lost(): NftablesNews {
    this.#gap = false;
    return { kind: "lost", tables: this.#takeTouched() };
  }

  #takeTouched(): readonly TouchedTable[] {
    const tables = [...this.#touched.values()];
    this.#touched = new Map();
    return tables;
  }

  #message(bytes: Buffer, start: number, end: number): NftablesNews | undefined {
    if (bytes[start + 5] !== SUBSYSTEM || bytes.readUInt32LE(start + PORT_AT) === this.#own()) return undefined;
    if (bytes[start + 4] !== MESSAGES.newGeneration) {
      this.#touch(FAMILY_OF_NUMBER.get(bytes[start + 16] ?? 0), bytes, start, end);
      return undefined;
    }
    if (this.#gap) return this.#lost();
    const of = new Attributes(bytes, start + HEADER, end);
    return {
      kind: "transaction",
      generation: of.u32(GENERATION.id) ?? 0,
      process: { id: of.u32(GENERATION.processId) ?? 0, name: of.text(GENERATION.processName) ?? "" },
      tables: this.#takeTouched(),
    };
  }

  /** The table's name is the first attribute of every message; the rest is not read. */
  #touch(family: NftFamily | undefined, bytes: Buffer, start: number, end: number): void {
    const at = start + HEADER;
    if (family === undefined || at + 4 > end || bytes.readUInt16LE(at + 2) !== TABLE.name) return;
    const name = bytes.toString("utf8", at + 4, Math.min(end, at + bytes.readUInt16LE(at)) - 1);
    this.#touched.set(`${family} ${name}`, { family, name });
  }
}

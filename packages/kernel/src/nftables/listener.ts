import { sleep, slices, type Timers } from "@fairlead/base";
import { GROUPS, type ListeningSocket, LONGEST_TOLD, type OpenListening, receiveOrLost } from "../netlink/listening.ts";
import { NewsReader } from "./news.ts";
import { concerns, type NftablesNews, type NftablesWatchOptions } from "./watch.ts";

/** What a watch needs of its client. */
export interface Surroundings {
  readonly listen: OpenListening;
  readonly timers: Timers;
  /** The number of the socket of own transactions, once it is known. */
  readonly ownPort: () => number | undefined;
  readonly generation: () => Promise<number>;
  /** Those who have to be quiet during large own transactions. */
  readonly listeners: Set<Listener>;
}

/** Milliseconds between two looks whether something was told: a system call each. */
const PAUSE_MS = 100;
/** Milliseconds until listening is tried again after an error. */
const RESTART_MS = 1_000;

/** One who watches, on a socket of its own. */
export class Listener {
  readonly #socket: ListeningSocket;
  readonly #reader: NewsReader;
  readonly #room = Buffer.alloc(LONGEST_TOLD);

  constructor(socket: ListeningSocket, ownPort: () => number | undefined) {
    this.#socket = socket;
    this.#reader = new NewsReader(ownPort);
  }

  /** Reported as lost next. */
  lose(): void {
    this.#reader.lose();
  }

  /** Does not listen while so many things are done that telling them would cost more than they do. */
  rest(): void {
    this.#socket.leave();
  }

  resume(): void {
    this.#socket.join();
  }

  /** What was told until now, in turns. */
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
    // The answer has the number of the socket of own transactions, which are told from others by it.
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

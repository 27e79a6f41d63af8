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
  #lost = false;

  constructor(socket: ListeningSocket, ownPort: () => number | undefined) {
    this.#socket = socket;
    this.#reader = new NewsReader(ownPort);
  }

  /** Told as lost next. */
  lose(): void {
    this.#lost = true;
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
    for (let bytes = this.#receive(); bytes !== undefined || this.#lost; bytes = this.#receive()) {
      if (this.#lost) {
        this.#lost = false;
        yield { kind: "lost" };
      }
      if (bytes !== undefined) yield* this.#reader.read(bytes);
      await yielding();
    }
  }

  close(): void {
    this.#socket.close();
  }

  #receive(): Buffer | undefined {
    const bytes = receiveOrLost(this.#socket, this.#room);
    if (bytes !== "lost") return bytes;
    this.#reader.reset();
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
  let { since } = options;
  while (!signal.aborted) {
    try {
      for await (const news of listenOnce(around, signal, since)) if (concerns(news, tables)) yield news;
    } catch (error) {
      onProblem(error);
      await sleep(around.timers, RESTART_MS, signal);
      // No generation: what was told until then is not known to be all.
      since = 0;
    }
  }
}

async function* listenOnce(
  { listen, listeners, ownPort, generation, timers }: Surroundings,
  signal: AbortSignal,
  since: number | undefined,
): AsyncGenerator<NftablesNews, void, void> {
  const listener = new Listener(await listen(GROUPS.nftables), ownPort);
  try {
    listener.resume();
    listeners.add(listener);
    if ((await generation()) !== since && since !== undefined) listener.lose();
    while (!signal.aborted) {
      yield* listener.news();
      await sleep(timers, PAUSE_MS, signal);
    }
  } finally {
    listeners.delete(listener);
    listener.close();
  }
}

/** Does what only one run may do at a time; after a kill another run takes over. */

import { type Clock, sleep } from "@fairlead/base";

/** Another run is changing the cluster. */
export class HeldByAnother extends Error {
  constructor(holder: string) {
    super(`another run is changing this cluster: ${holder}`);
  }
}

interface HoldOptions {
  /** In words for other runs: the host, the process. */
  readonly holder: string;
  readonly clock: Clock;
  /** An unknown holder has it: it is taken over in so many milliseconds unless that holder renews it. */
  readonly onWait: (holder: string, milliseconds: number) => void;
  /** Aborted: the wait is given up. */
  readonly signal: AbortSignal;
}

/**
 * Does what only one may do at a time. If the port knows that the holder's process is gone, it is taken over at once;
 * any other holder is given up after 40 seconds without a renewal by this side's clock, as in client-go's leader
 * election.
 *
 * @param work its signal is aborted when another holder has taken over, or renewing has failed for as long
 * @throws HeldByAnother when another holder has it, or has taken it over; what the port throws at the beginning
 */
export async function whileHolding<T>(
  port: HolderPort,
  options: HoldOptions,
  work: (lost: AbortSignal) => Promise<T>,
): Promise<T> {
  const hold = new Hold(port, options, await taken(port, options));
  try {
    const result = await work(hold.lost);
    if (hold.lost.aborted) throw hold.lost.reason;
    return result;
  } finally {
    await hold.end();
  }
}

/** The holder of a cluster, as last written. */
export interface HeldBy {
  readonly holder: string;
  /** Another one after each write. */
  readonly version: string;
  /** Whether its process is there, in addition to what is written. Absent: unknown, it is on another host. */
  readonly process?: "runs" | "gone";
}

/** Where the cluster keeps the run that changes it. Each call may fail. */
export interface HolderPort {
  /** Undefined: there is no holder. */
  read(): Promise<HeldBy | undefined>;
  /**
   * Takes it in the place of what was read, or renews it.
   *
   * @returns undefined: another writer has changed it since
   */
  write(holder: string, before: HeldBy | undefined): Promise<HeldBy | undefined>;
  /** Gives it up, where it is still the same. */
  release(held: HeldBy): Promise<void>;
}

/** Milliseconds between two renewals, and after which a holder that has not renewed is given up. */
const RENEW_MS = 5_000;
const GIVEN_UP_MS = 40_000;
const LOOK_MS = 1_000;

async function taken(port: HolderPort, options: HoldOptions): Promise<HeldBy> {
  const found = await port.read();
  const before = found && (await afterGivingUp(port, found, options));
  const held = await port.write(options.holder, before);
  if (held === undefined) throw new HeldByAnother((await port.read())?.holder ?? "another run, which has ended");
  return held;
}

/**
 * @returns what may be written over; undefined: it was given up
 * @throws HeldByAnother when they renew it, or run
 */
async function afterGivingUp(
  port: HolderPort,
  found: HeldBy,
  { clock, onWait, signal }: HoldOptions,
): Promise<HeldBy | undefined> {
  if (found.process === "gone") return found;
  if (found.process === "runs") throw new HeldByAnother(found.holder);
  onWait(found.holder, GIVEN_UP_MS);
  const end = clock.monotonic() + GIVEN_UP_MS;
  while (clock.monotonic() < end && !signal.aborted) {
    await sleep(clock, LOOK_MS, signal);
    const now = await port.read();
    if (now === undefined) return undefined;
    if (now.version !== found.version) throw new HeldByAnother(now.holder);
  }
  if (signal.aborted) throw new HeldByAnother(found.holder);
  return found;
}

/** Renews it until it ends. */
class Hold {
  readonly #port: HolderPort;
  readonly #options: HoldOptions;
  readonly #lost = new AbortController();
  #held: HeldBy;
  #renewedAt: number;
  #cancel: () => void = () => {};
  #renewing: Promise<void> | undefined;

  constructor(port: HolderPort, options: HoldOptions, held: HeldBy) {
    this.#port = port;
    this.#options = options;
    this.#held = held;
    this.#renewedAt = options.clock.monotonic();
    this.#schedule();
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  async end(): Promise<void> {
    this.#cancel();
    await this.#renewing;
    this.#cancel();
    // Where it cannot be given up, it is taken over after a while.
    if (!this.#lost.signal.aborted) await this.#port.release(this.#held).catch(() => {});
  }

  #schedule(): void {
    this.#cancel = this.#options.clock.after(RENEW_MS, () => {
      this.#renewing = this.#renew();
    });
  }

  async #renew(): Promise<void> {
    const { holder, clock } = this.#options;
    const began = clock.monotonic();
    try {
      const held = await this.#port.write(holder, this.#held);
      if (held === undefined) {
        this.#lost.abort(new HeldByAnother("another run, which took over"));
        return;
      }
      this.#held = held;
      this.#renewedAt = began;
    } catch (error) {
      if (clock.monotonic() - this.#renewedAt >= GIVEN_UP_MS - RENEW_MS) {
        this.#lost.abort(error);
        return;
      }
    }
    this.#schedule();
  }
}

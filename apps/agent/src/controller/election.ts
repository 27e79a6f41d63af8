/** Leader election by a Lease, as client-go has it, and work that only the leader does. */

import { type Clock, errorChainText, sleep, type Timers } from "@fairlead/base";
import type { Log } from "../log.ts";

/** A coordination.k8s.io/v1 Lease. */
export interface LeasePort {
  /** @returns undefined: there is none. @throws Error when the API server gives no answer, or refuses */
  read(): Promise<{ readonly record: LeaseRecord; readonly version: string } | undefined>;
  /**
   * Writes it over the version that was read; creates it where that is undefined.
   *
   * @throws Error also where another candidate has written in between
   */
  write(record: LeaseRecord, version: string | undefined): Promise<void>;
}

/** The right to write, as far as it is known now. */
export interface Leadership {
  /** Aborts when the lease is lost, or could not be renewed in time. */
  readonly signal: AbortSignal;
  /**
   * Whether this process may still write. To be asked before each write: a process that was paused goes on without its
   * timers having run, and another may lead by then.
   */
  holds(): boolean;
}

/** Milliseconds. */
interface ElectionTimes {
  /** For which the lease holds without being renewed; another candidate waits for its end. Whole seconds. */
  readonly lease: number;
  /** After which a leader that could not renew it writes no more. Less than `lease`. */
  readonly renewDeadline: number;
  /** Between two tries. Less than `renewDeadline`. */
  readonly retryPeriod: number;
}

interface ElectionOptions {
  readonly identity: string;
  readonly lease: LeasePort;
  readonly clock: Clock;
  /** From 0 to 1. */
  readonly random: () => number;
  /** Default: those of client-go. */
  readonly times?: ElectionTimes;
  /** What a try ended with that did not take or renew the lease. */
  readonly onError: (error: unknown) => void;
}

/** As client-go's leader election has them by default. */
const ELECTION_TIMES: ElectionTimes = { lease: 15_000, renewDeadline: 10_000, retryPeriod: 2000 };

/** Waiting candidates do not all ask at once (client-go's JitterFactor). */
const JITTER = 1.2;

/** One request without an answer must not cost the lease (client-go's clients of a Lease have half of it as well). */
const REQUESTS_IN_DEADLINE = 2;

/**
 * One of several processes leads, as client-go's k8s.io/client-go/tools/leaderelection has it: by default with a Lease
 * of 15 s that is renewed every 2 s and given up after 10 s without success. Other processes' clocks are not believed:
 * a lease has ended when it did not change for as long of this process's own time.
 */
export class Election {
  readonly #options: ElectionOptions;
  readonly #times: ElectionTimes;
  /** What was read last, and when that was new, in monotonic milliseconds. */
  #observed: { readonly text: string; readonly record: LeaseRecord; readonly at: number } | undefined;
  #renewed = Number.NEGATIVE_INFINITY;

  constructor(options: ElectionOptions) {
    this.#options = options;
    this.#times = options.times ?? ELECTION_TIMES;
  }

  /** Who leads, as far as it was read; undefined: not read yet, or released. */
  get holder(): string | undefined {
    return this.#observed?.record.holderIdentity || undefined;
  }

  /**
   * Waits for the lease, leads, and waits again when it is lost, until the signal aborts; then releases it, so that
   * another process leads within 2 s.
   *
   * @throws what `lead` throws, after a release
   */
  async run(lead: (leadership: Leadership) => Promise<void>, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (await this.#try()) await this.#leading(lead, signal);
      else await sleep(this.#options.clock, this.#times.retryPeriod * (1 + this.#options.random() * JITTER), signal);
    }
  }

  async #leading(lead: (leadership: Leadership) => Promise<void>, signal: AbortSignal): Promise<void> {
    const stop = new AbortController();
    const abort = () => stop.abort();
    signal.addEventListener("abort", abort);
    if (signal.aborted) stop.abort();
    const renewing = this.#renew(stop);
    try {
      await lead({ signal: stop.signal, holds: () => !stop.signal.aborted && this.#isFresh() });
    } finally {
      stop.abort();
      signal.removeEventListener("abort", abort);
      await renewing;
      await this.#release();
    }
  }

  async #renew(stop: AbortController): Promise<void> {
    const { clock } = this.#options;
    while (!stop.signal.aborted) {
      await sleep(clock, this.#times.retryPeriod, stop.signal);
      if (stop.signal.aborted) return;
      await this.#try();
      if (!this.#isFresh() || this.holder !== this.#options.identity) stop.abort();
    }
  }

  #isFresh(): boolean {
    return this.#options.clock.monotonic() - this.#renewed < this.#times.renewDeadline;
  }

  /** Takes or renews the lease. @returns whether this process holds it now */
  async #try(): Promise<boolean> {
    const { identity, lease, clock, onError } = this.#options;
    // The lease counts from before the request: until then no other process can have seen it change.
    const before = clock.monotonic();
    try {
      const found = await this.#inTime(lease.read());
      if (found !== undefined) this.#observe(found.record);
      if (found !== undefined && this.#isHeldByAnother(found.record)) return false;
      const record = heldAgain(found?.record, identity, this.#times.lease / 1000, clock.now());
      await this.#inTime(lease.write(record, found?.version));
      this.#observe(record);
      this.#renewed = before;
      return true;
    } catch (error) {
      onError(error);
      return false;
    }
  }

  #inTime<T>(answer: Promise<T>): Promise<T> {
    return within(this.#options.clock, this.#times.renewDeadline / REQUESTS_IN_DEADLINE, answer);
  }

  #observe(record: LeaseRecord): void {
    const text = JSON.stringify(record);
    if (this.#observed?.text !== text) this.#observed = { text, record, at: this.#options.clock.monotonic() };
  }

  #isHeldByAnother({ holderIdentity, leaseDurationSeconds }: LeaseRecord): boolean {
    if (holderIdentity === "" || holderIdentity === this.#options.identity) return false;
    const since = this.#options.clock.monotonic() - (this.#observed?.at ?? 0);
    return since < Math.max(1000 * leaseDurationSeconds, this.#times.lease);
  }

  async #release(): Promise<void> {
    const { identity, lease, clock, onError } = this.#options;
    this.#renewed = Number.NEGATIVE_INFINITY;
    try {
      const found = await this.#inTime(lease.read());
      if (found?.record.holderIdentity !== identity) return;
      await this.#inTime(lease.write(released(found.record, clock.now()), found.version));
      this.#observed = undefined;
    } catch (error) {
      // It ends by itself after 15 s.
      onError(error);
    }
  }
}

/** spec of a coordination.k8s.io/v1 Lease, as client-go's candidates write it. */
export interface LeaseRecord {
  /** "": released. */
  readonly holderIdentity: string;
  readonly leaseDurationSeconds: number;
  /** RFC 3339 with microseconds. */
  readonly acquireTime: string;
  readonly renewTime: string;
  readonly leaseTransitions: number;
}

export interface LeadParts {
  /** Absent: this process is the only one. */
  readonly election?: { readonly lease: LeasePort; readonly identity: string; readonly times: ElectionTimes };
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  /** Called when this process begins to write, and when it ends. */
  readonly onLeader: (leads: boolean) => void;
}

/** Runs `lead` whenever this process may write, until the signal aborts; then the lease is released. */
export async function leading(
  parts: LeadParts,
  lead: (leadership: Leadership) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const { election, clock, random, log, onLeader } = parts;
  const counted = async (leadership: Leadership) => {
    onLeader(true);
    try {
      await lead(leadership);
    } finally {
      onLeader(false);
    }
  };
  if (election === undefined) return counted({ signal, holds: () => !signal.aborted });
  const { identity, times } = election;
  let failing = false;
  const lease: LeasePort = {
    async read() {
      const found = await election.lease.read();
      const holder = found?.record.holderIdentity ?? "";
      // It takes no write to wait for another.
      if (holder !== "" && holder !== identity) failing = false;
      return found;
    },
    async write(record, version) {
      await election.lease.write(record, version);
      failing = false;
    },
  };
  const onError = (error: unknown) => {
    const fields = { error: errorChainText(error) };
    if (failing) log.verbose(4, "Failed to acquire or renew the lease; retrying", fields);
    else log.warn("Failed to acquire or renew the lease; retrying", fields);
    failing = true;
  };
  await new Election({ identity, lease, clock, random, times, onError }).run(async (leadership) => {
    log.info("Leading; this process writes", { identity });
    await counted(leadership);
    if (!signal.aborted) log.warn("Lease lost; another process may write, waiting for it", { identity });
  }, signal);
}

/** The record by which a candidate takes the lease, or goes on holding it. */
function heldAgain(old: LeaseRecord | undefined, identity: string, seconds: number, now: number): LeaseRecord {
  const time = microTime(now);
  const isOwn = old?.holderIdentity === identity;
  return {
    holderIdentity: identity,
    leaseDurationSeconds: seconds,
    acquireTime: isOwn ? old.acquireTime : time,
    renewTime: time,
    leaseTransitions: old === undefined ? 0 : old.leaseTransitions + (isOwn ? 0 : 1),
  };
}

/** As client-go releases it: without a holder, for a second. */
function released(old: LeaseRecord, now: number): LeaseRecord {
  const time = microTime(now);
  return { ...old, holderIdentity: "", leaseDurationSeconds: 1, acquireTime: time, renewTime: time };
}

/** metav1.MicroTime. */
function microTime(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000Z");
}

/** The answer, or an Error where it does not come in time. What comes later is ignored. */
function within<T>(timers: Timers, ms: number, answer: Promise<T>): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const cancel = timers.after(ms, () => reject(new Error(`no answer within ${ms / 1000} s`)));
  answer.then(resolve, reject).finally(cancel);
  return promise;
}

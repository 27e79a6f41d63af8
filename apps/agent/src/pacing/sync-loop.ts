import type { Clock } from "../clock.ts";
import { type BackoffLimits, backoffDelay } from "./backoff.ts";

/** partial: what changed since the last sync. full: everything, whatever the kernel holds. */
export type SyncKind = "partial" | "full";

export interface SyncLoopSettings {
  /** Milliseconds between the end of one run and the start of the next. */
  readonly minInterval: number;
  /** How often `check` looks whether what must be there still is. */
  readonly checkInterval: number;
  /** A full sync without any other reason comes this long after the last one. */
  readonly fullInterval: number;
  readonly backoff: BackoffLimits;
}

export interface SyncLoopWork {
  /** Takes in everything that is known when it starts. A rejection is followed by a full sync after the back-off. */
  sync(kind: SyncKind): Promise<void>;
  /** False asks for a full sync. A rejection says nothing: it is asked again after `checkInterval`. */
  check(): Promise<boolean>;
}

type Job = SyncKind | "check";

/**
 * Paces the syncs of one IP family, with the meaning of upstream's BoundedFrequencyRunner: an idle loop runs a request at
 * once, requests during a run or within `minInterval` of its end are taken together by the next one. Never two runs at
 * once. Nothing runs before `start`.
 */
export class SyncLoop {
  readonly #settings: SyncLoopSettings;
  readonly #work: SyncLoopWork;
  readonly #clock: Clock;
  readonly #random: () => number;

  #requested: SyncKind | undefined;
  #running: Promise<void> | undefined;
  #started = false;
  #failures = 0;
  #notBefore = 0;
  #nextCheck = 0;
  #nextFull = 0;
  #cancelTimer: () => void = () => {};

  constructor(settings: SyncLoopSettings, work: SyncLoopWork, clock: Clock, random: () => number = Math.random) {
    this.#settings = settings;
    this.#work = work;
    this.#clock = clock;
    this.#random = random;
  }

  /** Asks for a sync; a full one wins over a partial one. */
  request(kind: SyncKind): void {
    if (this.#requested !== "full") this.#requested = kind;
    this.#schedule();
  }

  /** Begins to run; the first sync is a full one. */
  start(): void {
    this.#started = true;
    const now = this.#clock.monotonic();
    this.#nextCheck = now + this.#settings.checkInterval;
    this.#nextFull = now + this.#settings.fullInterval;
    this.request("full");
  }

  /** Starts nothing new; resolves when what runs has ended. */
  async stop(): Promise<void> {
    this.#started = false;
    this.#cancelTimer();
    await this.#running;
  }

  #schedule(): void {
    this.#cancelTimer();
    if (!this.#started || this.#running !== undefined) return;
    const wait = this.#nextRun() - this.#clock.monotonic();
    if (wait <= 0) this.#run(this.#takeJob());
    else this.#cancelTimer = this.#clock.after(wait, () => this.#schedule());
  }

  #nextRun(): number {
    if (this.#requested !== undefined) return this.#notBefore;
    return Math.max(this.#notBefore, Math.min(this.#nextCheck, this.#nextFull));
  }

  /** A due check goes before a partial sync, so that steady change does not keep it off. */
  #takeJob(): Job {
    const now = this.#clock.monotonic();
    const kind = now >= this.#nextFull ? "full" : this.#requested;
    if (kind !== "full" && now >= this.#nextCheck) return "check";
    this.#requested = undefined;
    return kind ?? "check";
  }

  /** The work starts on a later microtask, so that a request it makes itself finds the loop running. */
  #run(job: Job): void {
    this.#running = Promise.resolve()
      .then(() => this.#do(job))
      .finally(() => {
        this.#running = undefined;
        this.#schedule();
      });
  }

  async #do(job: Job): Promise<void> {
    if (job === "check") await this.#check();
    else await this.#sync(job);
  }

  async #check(): Promise<void> {
    const intact = await this.#work.check().catch(() => true);
    this.#nextCheck = this.#clock.monotonic() + this.#settings.checkInterval;
    if (!intact) this.#requested = "full";
  }

  async #sync(kind: SyncKind): Promise<void> {
    const failed = await this.#work.sync(kind).then(
      () => false,
      () => true,
    );
    const now = this.#clock.monotonic();
    this.#notBefore = now + this.#settings.minInterval;
    if (failed) this.#retry(now);
    else this.#succeeded(kind, now);
  }

  #succeeded(kind: SyncKind, now: number): void {
    this.#failures = 0;
    if (kind !== "full") return;
    this.#nextFull = now + this.#settings.fullInterval;
    this.#nextCheck = now + this.#settings.checkInterval;
  }

  #retry(now: number): void {
    this.#failures++;
    this.#requested = "full";
    this.#notBefore =
      now + Math.max(this.#settings.minInterval, backoffDelay(this.#failures, this.#settings.backoff, this.#random()));
  }
}

import type { Clock } from "@fairlead/base";

/** partial: what changed since the last sync. full: everything, whatever the kernel holds. */
export type SyncKind = "partial" | "full";

export interface SyncLoopSettings {
  /** Milliseconds between the end of one sync and the start of the next. */
  readonly minInterval: number;
  /**
   * What must be there and is not is there again so long after it went: looked at and written as far as that took last.
   */
  readonly checkInterval: number;
  /** A full sync without any other reason comes this long after the last one. */
  readonly fullInterval: number;
}

export interface SyncLoopWork {
  /**
   * Takes in everything that is known when it starts. Must not reject.
   *
   * @returns milliseconds after which it wants to be called again though nothing changes; undefined: it does not
   */
  sync(kind: SyncKind): Promise<number | undefined>;
  /** False asks for a full sync, and for a check right after it. Must not reject. */
  check(): Promise<boolean>;
}

type Job = SyncKind | "check";

/**
 * Paces the syncs, with the meaning of upstream's BoundedFrequencyRunner: an idle loop runs a request at once, requests
 * during a run or within `minInterval` of its end are taken together by the next one. Never two runs at once. Nothing
 * runs before `start`.
 */
export class SyncLoop {
  readonly #settings: SyncLoopSettings;
  readonly #work: SyncLoopWork;
  readonly #clock: Clock;

  #requested: SyncKind | undefined;
  #running: Promise<void> | undefined;
  #started = false;
  #notBefore = 0;
  #retryAt = Number.POSITIVE_INFINITY;
  #nextCheck = 0;
  #nextFull = 0;
  #checkTook = 0;
  #fullTook = 0;
  /** What a check has found is written again: the next check says whether that helped. */
  #repairing = false;
  #cancelTimer: () => void = () => {};

  constructor(settings: SyncLoopSettings, work: SyncLoopWork, clock: Clock) {
    this.#settings = settings;
    this.#work = work;
    this.#clock = clock;
  }

  /** Asks for a sync; a full one wins over a partial one. */
  request(kind: SyncKind): void {
    if (this.#requested !== "full") this.#requested = kind;
    this.#schedule();
  }

  requestCheck(): void {
    this.#nextCheck = this.#clock.monotonic();
    this.#schedule();
  }

  /** Begins to run; the first sync is a full one. */
  start(): void {
    this.#started = true;
    this.#nextCheck = this.#clock.monotonic() + this.#untilCheck();
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
    return Math.max(this.#notBefore, Math.min(this.#retryAt, this.#nextCheck, this.#nextFull));
  }

  /** A due check goes before a partial sync, so that steady change does not keep it off. */
  #takeJob(): Job {
    const now = this.#clock.monotonic();
    const kind = now >= this.#nextFull ? "full" : this.#requested;
    if (kind !== "full" && now >= this.#nextCheck) return "check";
    this.#requested = undefined;
    return kind ?? "partial";
  }

  /** The work starts on a later microtask, so that a request it makes itself finds the loop running. */
  #run(job: Job): void {
    this.#running = Promise.resolve()
      .then(() => (job === "check" ? this.#check() : this.#sync(job)))
      .finally(() => {
        this.#running = undefined;
        this.#schedule();
      });
  }

  async #check(): Promise<void> {
    const started = this.#clock.monotonic();
    this.#nextCheck = Number.POSITIVE_INFINITY;
    const intact = await this.#work.check();
    const now = this.#clock.monotonic();
    this.#checkTook = now - started;
    // Earlier where it was asked for meanwhile.
    this.#nextCheck = Math.min(this.#nextCheck, started + this.#untilCheck());
    if (intact) return;
    this.#requested = "full";
    this.#repairing = true;
  }

  async #sync(kind: SyncKind): Promise<void> {
    const started = this.#clock.monotonic();
    if (kind === "full") this.#nextCheck = Number.POSITIVE_INFINITY;
    const retryIn = await this.#work.sync(kind);
    const now = this.#clock.monotonic();
    this.#notBefore = now + this.#settings.minInterval;
    this.#retryAt = now + (retryIn ?? Number.POSITIVE_INFINITY);
    if (kind !== "full") return;
    this.#fullTook = now - started;
    this.#nextFull = now + this.#settings.fullInterval;
    // At once where it was asked for meanwhile: another program may have changed what was just written.
    this.#nextCheck = this.#repairing ? now : Math.min(this.#nextCheck, now + this.#untilCheck());
    this.#repairing = false;
  }

  /**
   * Milliseconds from the beginning of one check to the next one. What goes right after the first is to be there again
   * within `checkInterval`, so checking and writing are taken off, doubly since they may take longer than they did; but
   * checks take no more than half of the time.
   */
  #untilCheck(): number {
    const { checkInterval } = this.#settings;
    const work = 2 * (this.#checkTook + this.#fullTook);
    return Math.max(checkInterval - work, checkInterval / 2, 2 * this.#checkTook);
  }
}

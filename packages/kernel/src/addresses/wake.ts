/** Lets one waiter go on when it is woken or the signal aborts; remembers a wake that comes before the wait. */
export class Wake {
  readonly #signal: AbortSignal;
  #woken = false;
  #resolve: () => void = () => {};

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  up(): void {
    this.#woken = true;
    this.#resolve();
  }

  /** Forgets a wake that has come. */
  forget(): void {
    this.#woken = false;
  }

  wait(): Promise<void> {
    if (this.#woken || this.#signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      this.#resolve = () => {
        this.#signal.removeEventListener("abort", this.#resolve);
        resolve();
      };
      this.#signal.addEventListener("abort", this.#resolve);
    });
  }
}

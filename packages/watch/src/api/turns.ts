/** One resource's loop. */
type Loop = object;

/**
 * The turn to ask a server that gives no answer, or asks to come later. One loop has it and tries for all; the others
 * wait. Thousands of nodes that lose their API server together ask it a third as often, and find it as soon.
 */
export class Turns {
  #holder: Loop | undefined;
  readonly #waiting: { readonly loop: Loop; readonly go: () => void }[] = [];

  /** @returns whether the loop has the turn now: no other one has it */
  claim(loop: Loop): boolean {
    this.#holder ??= loop;
    return this.#holder === loop;
  }

  /** Claims the turn, or waits until it comes round or `signal` aborts. */
  async take(loop: Loop, signal: AbortSignal): Promise<void> {
    if (!this.claim(loop) && !signal.aborted) await this.#wait(loop, signal);
  }

  /** Ends the loop's turn, if it has it; the one that waits longest is next. */
  pass(loop: Loop): void {
    if (this.#holder !== loop) return;
    const next = this.#waiting.shift();
    this.#holder = next?.loop;
    next?.go();
  }

  #wait(loop: Loop, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const leave = () => {
        const at = this.#waiting.indexOf(entry);
        if (at >= 0) this.#waiting.splice(at, 1);
        resolve();
      };
      const go = () => {
        signal.removeEventListener("abort", leave);
        resolve();
      };
      const entry = { loop, go };
      this.#waiting.push(entry);
      signal.addEventListener("abort", leave, { once: true });
    });
  }
}

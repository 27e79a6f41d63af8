/**
 * The most processor time that passed between two looks at the clock, about a millisecond of idling apart: how long the
 * event loop was held, in milliseconds. What a busy machine takes away does not count.
 */
export class LongestTurn {
  #longest = 0;
  #last = cpuTime();
  readonly #timer = setInterval(() => this.#look(), 1);

  end(): number {
    this.#look();
    clearInterval(this.#timer);
    return this.#longest;
  }

  #look(): void {
    const now = cpuTime();
    this.#longest = Math.max(this.#longest, now - this.#last);
    this.#last = now;
  }
}

function cpuTime(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

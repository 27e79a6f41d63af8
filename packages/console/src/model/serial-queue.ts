/** Work that comes one after the other: what begins while other work goes on waits for its end. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work);
    // Whoever asked for it is told; the next one does not mind.
    this.#last = turn.catch(() => undefined);
    return turn;
  }
}

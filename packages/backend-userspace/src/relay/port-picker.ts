import type { PortRange } from "../options.ts";

/** Gives ports to try, each of a range once, beginning after the one that was given last; without a range 0: any. */
export class PortPicker {
  readonly #range: PortRange | undefined;
  #next: number;

  constructor(range: PortRange | undefined) {
    this.#range = range;
    this.#next = range?.from ?? 0;
  }

  /** @param first tried before all others; 0 or undefined: none is better than another */
  *ports(first?: number): Generator<number> {
    if (first !== undefined && first !== 0) yield first;
    if (this.#range === undefined) {
      yield 0;
      return;
    }
    const { from, to } = this.#range;
    for (let count = from; count <= to; count++) {
      const port = this.#next;
      this.#next = port === to ? from : port + 1;
      yield port;
    }
  }
}

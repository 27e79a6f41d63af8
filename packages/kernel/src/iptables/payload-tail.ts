/** Characters. */
export const KEPT = 4 * 1024 * 1024;

/** Remembers the last few megabytes of a payload that goes by, so that an error can show the line it is about. */
export class PayloadTail {
  #pieces: string[] = [];
  #size = 0;
  /** Number of the line that the first kept piece begins with or in. */
  #firstLine = 1;

  /** The same payload, looked at as it passes. */
  async *watch(payload: Iterable<string> | AsyncIterable<string>): AsyncGenerator<string, void, void> {
    for await (const piece of payload) {
      this.#keep(piece);
      yield piece;
    }
  }

  /** The text of that line (from 1) if it is still known. */
  line(number: number): string | undefined {
    return number < this.#firstLine ? undefined : this.#lines()[number - this.#firstLine];
  }

  /** The commands of the transaction whose COMMIT is that line, if all of them are still known. */
  transaction(commit: number): readonly string[] | undefined {
    const before = this.#lines().slice(0, Math.max(commit - this.#firstLine, 0));
    const start = before.findLastIndex((line) => line.startsWith("*"));
    return start < 0 ? undefined : before.slice(start + 1);
  }

  /** The first known rule that jumps or goes to the chain. */
  jumpTo(chain: string): { line: number; text: string } | undefined {
    const lines = this.#lines();
    const index = lines.findIndex((line) => line.endsWith(` -j ${chain}`) || line.endsWith(` -g ${chain}`));
    const text = lines[index];
    return text === undefined ? undefined : { line: this.#firstLine + index, text };
  }

  #lines(): readonly string[] {
    return this.#pieces.join("").split("\n");
  }

  #keep(piece: string): void {
    this.#pieces.push(piece);
    this.#size += piece.length;
    while (this.#size > KEPT && this.#pieces.length > 1) {
      const dropped = this.#pieces.shift() ?? "";
      this.#size -= dropped.length;
      this.#firstLine += dropped.split("\n").length - 1;
    }
  }
}

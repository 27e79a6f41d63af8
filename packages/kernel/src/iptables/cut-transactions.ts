import { lines } from "../runner/text.ts";

/**
 * Cuts the transactions of a payload: each has at most that many characters of commands, or one line. A chain that is
 * made goes into one transaction with its rules where they fit, else its rules stand in several.
 */
export async function* cutTransactions(
  payload: Iterable<string> | AsyncIterable<string>,
  most: number,
): AsyncGenerator<string, void, void> {
  const cutter = new Cutter(most);
  for await (const line of lines(payload)) yield* cutter.take(line);
}

class Cutter {
  readonly #most: number;
  /** `*nat` */
  #table = "";
  /** Characters of the transaction that is being written. */
  #written = 0;
  /** Lines that belong together: a chain that is made and the rules behind it. */
  #held: string[] = [];
  #heldSize = 0;

  constructor(most: number) {
    this.#most = most;
  }

  *take(line: string): Generator<string> {
    if (line.startsWith("*")) {
      this.#table = line;
      this.#written = 0;
      yield `${line}\n`;
    } else if (line.trimEnd() === "COMMIT") {
      yield* this.#writeHeld();
      yield `${line}\n`;
    } else {
      if (line.startsWith(":")) yield* this.#writeHeld();
      this.#held.push(line);
      this.#heldSize += size(line);
      if (this.#heldSize > this.#most) yield* this.#writeHeld();
    }
  }

  *#writeHeld(): Generator<string> {
    if (this.#written + this.#heldSize > this.#most) yield* this.#cut();
    for (const line of this.#held) {
      if (this.#written + size(line) > this.#most) yield* this.#cut();
      this.#written += size(line);
      yield `${line}\n`;
    }
    this.#held = [];
    this.#heldSize = 0;
  }

  *#cut(): Generator<string> {
    if (this.#written === 0) return;
    this.#written = 0;
    yield `COMMIT\n${this.#table}\n`;
  }
}

function size(line: string): number {
  return line.length + 1;
}

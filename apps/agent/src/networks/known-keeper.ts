import { errorChainText } from "@fairlead/base";
import { type LastKnown, serialiseLastKnown } from "@fairlead/networks";
import type { Log } from "../log/log.ts";
import { replaceFile } from "../ownership/memory-file.ts";

/**
 * Writes the last known networks to their file whenever they differ. That it cannot be written is reported once and no
 * reason to stop.
 */
export class KnownKeeper {
  readonly #path: string | undefined;
  readonly #log: Log;
  #text = "";
  #writing: Promise<void> = Promise.resolve();
  #reported = false;

  /** @param path undefined: nothing is kept */
  constructor(path: string | undefined, log: Log) {
    this.#path = path;
    this.#log = log;
  }

  keep(known: LastKnown): void {
    const text = serialiseLastKnown(known);
    if (text === this.#text) return;
    this.#text = text;
    this.#writing = this.#writing.then(() => this.#write(text));
  }

  /** Resolves when all is written. */
  async flush(): Promise<void> {
    await this.#writing;
  }

  async #write(text: string): Promise<void> {
    // A newer one waits already.
    if (text !== this.#text || this.#path === undefined) return;
    try {
      await replaceFile(this.#path, text);
      this.#reported = false;
    } catch (error) {
      if (this.#reported) return;
      this.#reported = true;
      const message = "Learnt networks are not kept: a restart waits for their first lists";
      this.#log.warn(message, { file: this.#path, error: errorChainText(error) });
    }
  }
}

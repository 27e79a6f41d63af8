import { errorChainText } from "@fairlead/base";
import { type LastKnown, serializeLastKnown } from "@fairlead/networks";
import type { Log } from "../log/log.ts";
import { replaceFile } from "../ownership/memory-file.ts";

/**
 * Writes the last known networks to their file whenever they differ. That it cannot be written is reported once and no
 * reason to stop.
 */
export class KnownKeeper {
  readonly #path: string | undefined;
  readonly #log: Log;
  #next: (() => LastKnown) | undefined;
  #text = "";
  #writing: Promise<void> = Promise.resolve();
  #reported = false;

  /** @param path undefined: nothing is kept */
  constructor(path: string | undefined, log: Log) {
    this.#path = path;
    this.#log = log;
  }

  /** @param read is called when the writing begins: what comes while one goes on is written once */
  keep(read: () => LastKnown): void {
    const waits = this.#next !== undefined;
    this.#next = read;
    if (!waits) this.#writing = this.#writing.then(() => this.#write());
  }

  /** Resolves when all is written. */
  async flush(): Promise<void> {
    await this.#writing;
  }

  async #write(): Promise<void> {
    const read = this.#next;
    this.#next = undefined;
    if (read === undefined || this.#path === undefined) return;
    const text = serializeLastKnown(read());
    if (text === this.#text) return;
    this.#text = text;
    try {
      await replaceFile(this.#path, text);
      this.#reported = false;
    } catch (error) {
      if (this.#reported) return;
      this.#reported = true;
      const message = "Failed to save learned networks; a restart waits for their first lists";
      this.#log.warn(message, { file: this.#path, error: errorChainText(error) });
    }
  }
}

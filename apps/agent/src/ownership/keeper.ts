import { type Clock, errorChainText, inSlices } from "@fairlead/base";
import type { MemoryUpdate } from "@fairlead/core";
import { type Memory, type MemoryScope, serializeInSteps } from "@fairlead/endpoint-filter";
import type { Log } from "../log/log.ts";
import { replaceFile } from "./memory-file.ts";

/** Milliseconds that changes are gathered for: a rollout changes many services in a row. */
const GATHER_MS = 500;
/** The file is written as a whole: in a large cluster it takes no more than this part of the time. */
const WRITING = 1 / 50;

export interface KeeperOptions {
  /** Undefined: it is not kept. */
  readonly path: string | undefined;
  readonly scope: MemoryScope;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * The ownership memory of a running agent, written to its file some time after it changed. That it cannot be written is
 * reported once and no reason to stop.
 */
export class MemoryKeeper {
  readonly #options: KeeperOptions;
  #memory: Memory;
  #cancel: (() => void) | undefined;
  #writing: Promise<void> = Promise.resolve();
  #reported = false;
  /** Milliseconds that the last one took. */
  #writingTook = 0;

  constructor(memory: Memory, options: KeeperOptions) {
    this.#memory = memory;
    this.#options = options;
  }

  get memory(): Memory {
    return this.#memory;
  }

  apply(updates: Iterable<MemoryUpdate>): void {
    const before = this.#memory;
    this.#memory = before.apply(updates);
    if (this.#memory === before) return;
    const wait = Math.max(GATHER_MS, this.#writingTook / WRITING);
    this.#cancel ??= this.#options.clock.after(wait, () => this.#begin());
  }

  /** Writes what is not written yet; resolves when it is. */
  async flush(): Promise<void> {
    if (this.#cancel !== undefined) this.#begin();
    await this.#writing;
  }

  #begin(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#writing = this.#writing.then(() => this.#write());
  }

  async #write(): Promise<void> {
    const { path, scope, clock, log } = this.#options;
    if (path === undefined) return;
    const began = clock.monotonic();
    try {
      await replaceFile(path, await inSlices(serializeInSteps(this.#memory, scope), { clock }));
      this.#reported = false;
    } catch (error) {
      if (this.#reported) return;
      this.#reported = true;
      const message = "Failed to save the ownership memory; a restart decides anew for services without endpoints";
      log.warn(message, { file: path, error: errorChainText(error) });
    } finally {
      this.#writingTook = clock.monotonic() - began;
    }
  }
}

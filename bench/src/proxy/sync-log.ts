import { type FileHandle, open } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

const LOOK_EVERY_MS = 5;

/** A proxy's sync did not come to its end in time. */
export class NoSyncError extends Error {
  constructor(withinMs: number) {
    super(`no sync within ${withinMs} ms`);
  }
}

/** Reads the times of syncs from a proxy's log as it grows. The proxy is not asked anything meanwhile. */
export class SyncLog {
  readonly #file: FileHandle;
  readonly #pattern: RegExp;
  #rest = "";
  /** Milliseconds since the epoch, when each sync ended. */
  readonly #times: number[] = [];

  private constructor(file: FileHandle, pattern: RegExp) {
    this.#file = file;
    this.#pattern = pattern;
  }

  static async open(path: string, pattern: RegExp): Promise<SyncLog> {
    return new SyncLog(await open(path, "a+"), pattern);
  }

  /**
   * The end of the first sync after a moment.
   *
   * @throws NoSyncError when none comes in time
   */
  async syncAfter(moment: number, withinMs: number): Promise<number> {
    const deadline = performance.now() + withinMs;
    for (;;) {
      await this.#read();
      const found = this.#times.find((time) => time >= moment);
      if (found !== undefined) return found;
      if (performance.now() > deadline) throw new NoSyncError(withinMs);
      await sleep(LOOK_EVERY_MS);
    }
  }

  /** The end of the last sync, once none has ended for a while. */
  async lastSync(quietMs: number): Promise<number> {
    for (;;) {
      const before = this.#times.length;
      await sleep(quietMs);
      await this.#read();
      if (this.#times.length === before) return this.#times.at(-1) ?? 0;
    }
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  async #read(): Promise<void> {
    const { bytesRead, buffer } = await this.#file.read(Buffer.alloc(256 * 1024), 0, 256 * 1024, null);
    const lines = (this.#rest + buffer.toString("utf8", 0, bytesRead)).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      const time = this.#pattern.exec(line)?.[1];
      if (time !== undefined) this.#times.push(klogTime(time, new Date().getFullYear()));
    }
  }
}

/** `1121 10:09:13.123456` of local time → milliseconds since the epoch. */
export function klogTime(text: string, year: number): number {
  const [, month, day, hour, minute, second, micros] = /^(\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{6})$/.exec(text) ?? [];
  const whole = new Date(year, Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second));
  return whole.getTime() + Number(micros) / 1000;
}

import { describe, expect, test } from "vitest";
import { createProgress, type ProgressClock } from "../src/output/progress.ts";

/** A clock that moves when it is told; its ticks come then. */
class StepClock implements ProgressClock {
  #now = 0;
  readonly #ticks = new Set<{ readonly every: number; next: number; readonly tick: () => void }>();

  now(): number {
    return this.#now;
  }

  every(milliseconds: number, tick: () => void): () => void {
    const entry = { every: milliseconds, next: this.#now + milliseconds, tick };
    this.#ticks.add(entry);
    return () => this.#ticks.delete(entry);
  }

  pass(milliseconds: number): void {
    const until = this.#now + milliseconds;
    for (const entry of this.#ticks) {
      for (; entry.next <= until; entry.next += entry.every) {
        this.#now = entry.next;
        entry.tick();
      }
    }
    this.#now = until;
  }

  get waiting(): number {
    return this.#ticks.size;
  }
}

function reporting(isTTY: boolean) {
  const clock = new StepClock();
  const stream = { isTTY, text: "", write: (more: string) => (stream.text += more) };
  return { clock, stream, progress: createProgress(stream, clock) };
}

describe("progress", () => {
  test("what is done within a second is not spoken of", async () => {
    for (const isTTY of [true, false]) {
      const { clock, stream, progress } = reporting(isTTY);
      expect(await progress("reading", async () => clock.pass(999))).toBeUndefined();
      expect(stream.text).toBe("");
    }
  });

  test("a log gets one line, however long it takes", async () => {
    const { clock, stream, progress } = reporting(false);
    await progress("reading rules", async () => clock.pass(10_000));
    expect(stream.text).toBe("reading rules …\n");
  });

  test("a terminal gets one line that tells the seconds, and is empty again in the end", async () => {
    const { clock, stream, progress } = reporting(true);
    await progress("reading rules", async () => clock.pass(2_000));
    const erased = "\r\u001b[K";
    expect(stream.text).toBe(`\rreading rules … 1 s\rreading rules … 2 s${erased}`);
  });

  test("work that fails is told no more of, and its error is passed on", async () => {
    const { clock, progress } = reporting(true);
    const work = async () => {
      clock.pass(3_000);
      throw new Error("broken");
    };
    await expect(progress("reading rules", work)).rejects.toThrow("broken");
    expect(clock.waiting).toBe(0);
  });
});

import { describe, expect, test } from "vitest";
import { Followed, follow, until, VirtualClock } from "../src/testing/index.ts";

/** A stream that gives what is put into it, and ends with its signal, as those of processes do with an error. */
function source() {
  const pending: number[] = [];
  let wake = () => {};
  let failure: Error | undefined;
  async function* open(stop: AbortSignal): AsyncGenerator<number> {
    for (;;) {
      if (failure !== undefined) throw failure;
      if (stop.aborted) throw new Error("killed");
      const item = pending.shift();
      if (item !== undefined) yield item;
      else {
        await new Promise<void>((resolve) => {
          wake = resolve;
          stop.addEventListener("abort", () => resolve(), { once: true });
        });
      }
    }
  }
  return {
    open,
    put: (...items: readonly number[]) => {
      pending.push(...items);
      wake();
    },
    fail: (error: Error) => {
      failure = error;
      wake();
    },
  };
}

const last = (wanted: number) => (seen: readonly number[]) => seen.at(-1) === wanted;

describe("a followed stream", () => {
  test("waits for what comes later, finds what was there, and gives what was found", async ({ signal }) => {
    const { open, put } = source();
    await using numbers = follow(signal, open);
    const three = numbers.until(last(3));
    put(1, 2, 3, 4);
    await three;
    expect(await numbers.until((seen) => seen.find((one) => one > 1))).toBe(2);
    expect(await numbers.until((seen) => seen.length === 4 && seen)).toEqual([1, 2, 3, 4]);
  });

  test("each item is looked at, also where the next one comes at once", async ({ signal }) => {
    const numbers = new Followed<number>(signal);
    const two = numbers.until(last(2));
    for (const number of [1, 2, 3]) numbers.add(number);
    await two;
  });

  test("where it ends or fails, each waiter is given what never held, and what came last", async ({ signal }) => {
    const { open, put, fail } = source();
    await using numbers = follow(signal, open);
    const nine = numbers.until(last(9));
    put(1, 2);
    await numbers.until(last(2));
    fail(new Error("broken off"));
    await expect(nine).rejects.toThrow(
      /^the stream failed: broken off, and this never held: .*=== wanted\nlast of 2:\n1\n2$/,
    );
    await expect(numbers.until(last(7), "a seven")).rejects.toMatchObject({
      message: expect.stringContaining("never held: a seven"),
      cause: { message: "broken off" },
    });
    const ended = new Followed<number>(signal);
    ended.end();
    await expect(ended.until(last(1))).rejects.toThrow(/^the stream ended, and this never held: .*\nnothing came$/);
  });

  test("where the test is given up, too", async () => {
    const test = new AbortController();
    const { open, put } = source();
    await using numbers = follow(test.signal, open);
    put(1);
    await numbers.until(last(1));
    const two = numbers.until(last(2), "a two");
    const reason = new Error("timed out");
    test.abort(reason);
    await expect(two).rejects.toThrow("the test was given up, and this never held: a two\nlast of 1:\n1");
    expect(reason.message).toBe("timed out\nthis never held: a two\nlast of 1:\n1");
  });

  test("that fails without a waiter fails no test; stopped, it throws what it has kept", async ({ signal }) => {
    const [one, other] = [source(), source()];
    {
      await using failing = follow(signal, one.open);
      one.fail(new Error("broken off"));
      await expect(failing.until(last(1))).rejects.toThrow("broken off");
      await expect(failing.stop()).rejects.toThrow("broken off");
    }
    await follow(signal, other.open).stop();
  });
});

describe("what is looked at again and again", () => {
  test("in real time", async ({ signal }) => {
    let looks = 0;
    expect(await until(signal, () => (++looks > 2 ? `look ${looks}` : undefined))).toBe("look 3");
  });

  test("in virtual time", async ({ signal }) => {
    const clock = new VirtualClock();
    await until(signal, () => clock.monotonic() >= 5_000, clock);
    expect(clock.monotonic()).toBe(5_000);
  });

  test("until the test is given up", async () => {
    const test = new AbortController();
    const never = until(test.signal, async () => false as const);
    const reason = new Error("timed out");
    test.abort(reason);
    await expect(never).rejects.toThrow(/^the test was given up, and this never held: async \(\) => false/);
    expect(reason.message).toMatch(/^timed out\nthis never held: async \(\) => false/);
    const other = new AbortController();
    const neither = until(other.signal, () => undefined);
    other.abort();
    await expect(neither).rejects.toThrow(/^the test was given up/);
  });
});

import { VirtualClock } from "@fairlead/base/testing";
import { describe, expect, test } from "vitest";
import { createProgress, plain, styleFor } from "../src/frame/terminal.ts";

const COLORED = "\u001b[32mgood\u001b[39m";

describe("colors", () => {
  test.each<[what: string, terminal: boolean, env: Record<string, string>, expected: string]>([
    ["a terminal", true, {}, COLORED],
    ["a pipe or a file", false, {}, "good"],
    ["NO_COLOR", true, { NO_COLOR: "1" }, "good"],
    ["NO_COLOR without a value, which has no effect", true, { NO_COLOR: "" }, COLORED],
    ["a terminal without colors", true, { TERM: "dumb" }, "good"],
  ])("%s", (_what, terminal, env, expected) => expect(styleFor(terminal, env).good("good")).toBe(expected));

  test("without them text is as it was", () => {
    for (const paint of Object.values(plain)) expect(paint("text")).toBe("text");
  });
});

function reporting(isTTY: boolean) {
  const clock = new VirtualClock();
  const stream = { isTTY, text: "", write: (more: string) => (stream.text += more) };
  return { clock, stream, progress: createProgress(stream, clock) };
}

describe("progress", () => {
  test("what is done within a second is not spoken of", async () => {
    for (const isTTY of [true, false]) {
      const { clock, stream, progress } = reporting(isTTY);
      expect(await progress("reading", async () => clock.advanceNow(999))).toBeUndefined();
      expect(stream.text).toBe("");
    }
  });

  test("a log gets one line, however long it takes", async () => {
    const { clock, stream, progress } = reporting(false);
    await progress("reading rules", async () => clock.advanceNow(10_000));
    expect(stream.text).toBe("reading rules …\n");
  });

  test("a terminal gets one line that counts the seconds, and is empty again in the end", async () => {
    const { clock, stream, progress } = reporting(true);
    await progress("reading rules", async () => clock.advanceNow(2_000));
    const erased = "\r\u001b[K";
    expect(stream.text).toBe(`\rreading rules … 1 s\rreading rules … 2 s${erased}`);
  });

  test("work that fails is no longer shown, and its error is passed on", async () => {
    const { clock, progress } = reporting(true);
    const work = async () => {
      clock.advanceNow(3_000);
      throw new Error("broken");
    };
    await expect(progress("reading rules", work)).rejects.toThrow("broken");
    expect(clock.pending).toEqual([]);
  });
});

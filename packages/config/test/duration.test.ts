import { describe, expect, test } from "vitest";
import { formatDuration, parseDuration } from "../src/index.ts";

describe("durations as Go has them", () => {
  test.each([
    ["0", 0, "0s"],
    ["0s", 0, "0s"],
    ["1ns", 1e-6, "1ns"],
    ["1us", 1e-3, "1µs"],
    ["1.5µs", 1.5e-3, "1.5µs"],
    ["300ms", 300, "300ms"],
    ["1.5s", 1_500, "1.5s"],
    [".5s", 500, "500ms"],
    ["1.s", 1_000, "1s"],
    ["90s", 90_000, "1m30s"],
    ["15m", 900_000, "15m0s"],
    ["1h", 3_600_000, "1h0m0s"],
    ["2h22m", 8_520_000, "2h22m0s"],
    ["24h0m0s", 86_400_000, "24h0m0s"],
    ["1h15m30.918s", 4_530_918, "1h15m30.918s"],
    ["+5s", 5_000, "5s"],
    ["-1m", -60_000, "-1m0s"],
  ])("%s", (text, ms, written) => {
    expect(parseDuration(text)).toBeCloseTo(ms, 9);
    expect(formatDuration(ms)).toBe(written);
    expect(parseDuration(written)).toBeCloseTo(ms, 9);
  });

  test.each(["", "5", "s", "5 s", "1h 5m", "1d", "--1s", "1s-", "1e3s", "one", "-", ".s", "3000000h"])(
    "not %j",
    (text) => {
      expect(parseDuration(text)).toBeUndefined();
    },
  );
});

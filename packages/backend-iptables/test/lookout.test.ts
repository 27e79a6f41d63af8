import { expect, test } from "vitest";
import { Lookout } from "../src/lookout.ts";

const LARGE = 320_000;

function make() {
  let now = 0;
  const asked: string[] = [];
  const gone = new Set<string>();
  const looks = ["services", "canary", "jumps"].map((name) => async () => {
    asked.push(name);
    return !gone.has(name);
  });
  const lookout = new Lookout(() => now);
  const after = (milliseconds: number, rules: number) => {
    now += milliseconds;
    asked.length = 0;
    return lookout.holds("nat", rules, looks);
  };
  return { after, asked, gone };
}

test("everything in a small table is looked at each time", async () => {
  const { after, asked, gone } = make();
  for (let round = 0; round < 3; round++) {
    expect(await after(0, 5000)).toBe(true);
    expect(asked).toEqual(["services", "canary", "jumps"]);
  }
  gone.add("canary");
  expect(await after(0, 5000)).toBe(false);
  expect(asked).toEqual(["services", "canary"]);
});

test("a large table is looked at rarely, at one thing after the other", async () => {
  const { after, asked } = make();
  const rounds: string[][] = [];
  for (let second = 0; second < 700; second += 30) {
    expect(await after(second === 0 ? 0 : 30_000, LARGE)).toBe(true);
    if (asked.length > 0) rounds.push([...asked]);
  }
  expect(rounds).toEqual([["services"], ["canary"], ["jumps"], ["services"]]);
});

test("what is gone from a large table is seen when its turn comes", async () => {
  const { after, gone } = make();
  gone.add("jumps");
  const seen: boolean[] = [];
  for (let turn = 0; turn < 3; turn++) seen.push(await after(LARGE, LARGE));
  expect(seen).toEqual([true, true, false]);
});

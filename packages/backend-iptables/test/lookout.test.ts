import { describe, expect, test } from "vitest";
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

test("in a large table the first thing is looked at each time, the others rarely, one after the other", async () => {
  const { after, asked } = make();
  const others: string[][] = [];
  for (let second = 0; second < 700; second += 30) {
    expect(await after(second === 0 ? 0 : 30_000, LARGE)).toBe(true);
    const [first, ...more] = asked;
    expect(first).toBe("services");
    if (more.length > 0) others.push(more);
  }
  expect(others).toEqual([["canary"], ["jumps"], ["canary"], ["jumps"]]);
});

test("what is gone from a large table is seen at once when it is the first thing, else when its turn comes", async () => {
  const { after, gone } = make();
  gone.add("jumps");
  const seen: boolean[] = [];
  for (let turn = 0; turn < 2; turn++) seen.push(await after(LARGE, LARGE));
  expect(seen).toEqual([true, false]);
  gone.add("services");
  expect(await after(0, LARGE)).toBe(false);
});

describe("where the kernel tells of a table's state", () => {
  function telling(entries?: number) {
    let now = 0;
    let glance = { state: "1", ...(entries !== undefined && { entries }) };
    const asked: string[] = [];
    const looks = ["services", "canary", "jumps"].map((name) => async () => asked.push(name) > 0);
    const lookout = new Lookout(
      () => now,
      async () => glance,
    );
    const after = async (milliseconds: number, rules: number) => {
      now += milliseconds;
      asked.length = 0;
      return [await lookout.holds("nat", rules, looks), ...asked];
    };
    const change = (state: string, left?: number) => {
      glance = { state, ...(left !== undefined && { entries: left }) };
    };
    return { after, change };
  }

  test("everything in a small table is looked at after each change, and not again", async () => {
    const { after, change } = telling();
    expect(await after(0, 10)).toEqual([true, "services", "canary", "jumps"]);
    expect(await after(30_000, 10)).toEqual([true]);
    change("2");
    expect(await after(30_000, 10)).toEqual([true, "services", "canary", "jumps"]);
    expect(await after(30_000, 10)).toEqual([true]);
  });

  test("the only thing in a table is looked at, too", async () => {
    const lookout = new Lookout(
      () => 0,
      async () => ({ state: "1" }),
    );
    expect(await lookout.holds("mangle", 0, [async () => false])).toBe(false);
  });

  test("in a large table the first thing after each change, the others in turn, and nothing when all have had theirs", async () => {
    const { after, change } = telling();
    expect(await after(0, LARGE)).toEqual([true, "services", "canary"]);
    expect(await after(30_000, LARGE)).toEqual([true]);
    expect(await after(LARGE, LARGE)).toEqual([true, "jumps"]);
    expect(await after(LARGE, LARGE)).toEqual([true]);
    change("2");
    expect(await after(LARGE, LARGE)).toEqual([true, "services", "canary"]);
  });

  test("with the number of rules a flush needs no look, and the first thing has its turn with the others", async () => {
    const { after, change } = telling(LARGE + 9);
    expect(await after(0, LARGE)).toEqual([true]);
    for (const thing of ["services", "canary", "jumps"]) expect(await after(LARGE, LARGE)).toEqual([true, thing]);
    expect(await after(LARGE, LARGE)).toEqual([true]);
    change("2", LARGE - 1);
    expect(await after(0, LARGE)).toEqual([false]);
  });
});

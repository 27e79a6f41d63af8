import { describe, expect, test } from "vitest";
import { type Extent, Lookout } from "../src/lookout.ts";

const LARGE = 320_000;

interface Told {
  state: string;
  entries?: number;
}

/** A table, how often it is looked at, and what the kernel tells of it. */
function make(reported?: Told) {
  let now = 0;
  const asked: Extent[] = [];
  const holds: Record<Extent, boolean> = { fixed: true, all: true };
  const lookout = new Lookout({ monotonic: () => now }, async () => reported);
  const look = async (extent: Extent) => {
    asked.push(extent);
    return holds[extent] ? extent : undefined;
  };
  const after = async (milliseconds: number, rules: number) => {
    now += milliseconds;
    asked.length = 0;
    return [await lookout.holds("nat", rules, look), ...asked];
  };
  return { after, holds, lookout };
}

describe("where the kernel tells nothing of a table", () => {
  test("everything in a small one is looked at each time", async () => {
    const { after, holds } = make();
    for (let round = 0; round < 3; round++) expect(await after(0, 5000)).toEqual([true, "all"]);
    holds.all = false;
    expect(await after(0, 5000)).toEqual([false, "all"]);
  });

  test("in a large one what does not depend on services, and everything after a rest", async () => {
    const { after, holds } = make();
    expect(await after(0, LARGE)).toEqual([true, "fixed"]);
    expect(await after(30_000, LARGE)).toEqual([true, "fixed"]);
    expect(await after(LARGE, LARGE)).toEqual([true, "all"]);
    expect(await after(30_000, LARGE)).toEqual([true, "fixed"]);
    holds.fixed = false;
    expect(await after(30_000, LARGE)).toEqual([false, "fixed"]);
  });
});

describe("where the kernel tells of a table's state", () => {
  test("a look may find more than it was asked for", async () => {
    const lookout = new Lookout({ monotonic: () => 0 }, async () => ({ state: "1" }));
    const asked: Extent[] = [];
    const look = async (extent: Extent) => {
      asked.push(extent);
      return "all" as const;
    };
    for (let round = 0; round < 2; round++) expect(await lookout.holds("nat", LARGE, look)).toBe(true);
    expect(asked).toEqual(["fixed"]);
  });

  test("everything in a small one is looked at after each change, and not again", async () => {
    const reported: Told = { state: "1" };
    const { after } = make(reported);
    expect(await after(0, 10)).toEqual([true, "all"]);
    expect(await after(30_000, 10)).toEqual([true]);
    reported.state = "2";
    expect(await after(30_000, 10)).toEqual([true, "all"]);
    expect(await after(30_000, 10)).toEqual([true]);
  });

  test("what was not there is looked for again", async () => {
    const { after, holds } = make({ state: "1" });
    holds.all = false;
    expect(await after(0, 0)).toEqual([false, "all"]);
    expect(await after(0, 0)).toEqual([false, "all"]);
  });

  test("in a large one what does not depend on services after each change, everything after a rest, then nothing", async () => {
    const reported: Told = { state: "1" };
    const { after } = make(reported);
    expect(await after(0, LARGE)).toEqual([true, "fixed"]);
    expect(await after(30_000, LARGE)).toEqual([true]);
    expect(await after(LARGE, LARGE)).toEqual([true, "all"]);
    expect(await after(LARGE, LARGE)).toEqual([true]);
    reported.state = "2";
    expect(await after(30_000, LARGE)).toEqual([true, "all"]);
    reported.state = "3";
    expect(await after(30_000, LARGE)).toEqual([true, "fixed"]);
  });
});

describe("a large legacy table, whose rules the kernel counts and every look reads", () => {
  const reported = (): Told => ({ state: "1", entries: LARGE + 9 });

  test("a flush needs no look", async () => {
    const table = reported();
    const { after } = make(table);
    table.entries = LARGE - 1;
    expect(await after(0, LARGE)).toEqual([false]);
  });

  test("what this proxy has written is not looked at until somebody else changes something", async () => {
    const table = reported();
    const { after, lookout } = make(table);
    await lookout.wrote("nat", LARGE);
    expect(await after(LARGE / 4, LARGE)).toEqual([true]);
    const stood = await lookout.stands("nat", LARGE);
    table.state = "2";
    await lookout.wrote("nat", LARGE, stood);
    expect(await after(0, LARGE)).toEqual([true]);
    table.state = "3";
    expect(await after(0, LARGE)).toEqual([true, "all"]);
  });

  test("one rule for another of its size, which number and size do not tell, is looked for after each rest", async () => {
    const { after, lookout, holds } = make(reported());
    await lookout.wrote("nat", LARGE);
    expect(await after(30_000, LARGE)).toEqual([true]);
    holds.all = false;
    expect(await after(30_000, LARGE)).toEqual([true]);
    expect(await after(LARGE / 2, LARGE)).toEqual([false, "all"]);
  });

  test("so it is where few rules stand in many chains", async () => {
    const { after, lookout } = make({ state: "1", entries: 9000 });
    await lookout.wrote("nat", 4000);
    expect(await after(0, 4000)).toEqual([true, "all"]);
    expect(await after(30_000, 4000)).toEqual([true, "all"]);
  });

  test("a change between two of its own writes is looked at", async () => {
    const table = reported();
    const { after, lookout } = make(table);
    await lookout.wrote("nat", LARGE);
    table.state = "somebody's";
    expect(await lookout.stands("nat", LARGE)).toBeUndefined();
    table.state = "its own";
    expect(await after(0, LARGE)).toEqual([true, "all"]);
  });
});

import { describe, expect, test } from "vitest";
import { drawsOf, fewestOf, moduliOf, sizeAbove, sizeFor } from "../src/plan/classes.ts";

const MOST = 4096;
const counts = Array.from({ length: MOST }, (_, at) => at + 1);
const sizes = [...new Set(counts.map(sizeAbove))];
const moduli = new Map(sizes.map((size) => [size, moduliOf(size)]));
const moduliIn = (size: number) => moduli.get(size) ?? [];

test("sizes are powers of two, and half as much more", () => {
  expect(sizes.slice(0, 8)).toEqual([2, 3, 4, 6, 8, 12, 16, 24]);
  expect(sizes.at(-1)).toBe(6144);
});

describe("a service", () => {
  test.each([
    [1, undefined, 2],
    [2, 2, 2],
    [3, 2, 4],
    [3, undefined, 4],
    [5, 6, 6],
    [7, 6, 8],
    [3, 6, 6],
    [2, 6, 3],
    [1, 8, 2],
  ])("of %i endpoints that is in class %s goes to %i", (count, now, size) => {
    expect(sizeFor(count, now)).toBe(size);
  });

  test("has room to grow where it enters, and enough to stay where it is", () => {
    for (const count of counts) {
      const size = sizeAbove(count);
      expect(size).toBeGreaterThan(count);
      expect(fewestOf(size)).toBeLessThanOrEqual(count);
      expect(sizeFor(count + 1, size)).toBe(size);
    }
  });
});

test("no endpoint's chance differs from another's by more than 0.5 %, whatever the number, in whatever class", () => {
  const worst = counts.map((count) => {
    const classes = sizes.filter((size) => fewestOf(size) <= count && count <= size);
    expect(classes.length, `${count}`).toBeGreaterThan(0);
    return Math.max(...classes.map((size) => unevenness(chances(moduliIn(size), count), count)));
  });
  expect(Math.max(...worst)).toBeLessThanOrEqual(0.005);
  // It is no more draws than that needs.
  for (const size of sizes.filter((size) => drawsOf(size) > 1)) {
    const fewer = moduliIn(size).slice(1);
    const all = counts.filter((count) => fewestOf(size) <= count && count <= size);
    expect(Math.max(...all.map((count) => unevenness(chances(fewer, count), count))), `${size}`).toBeGreaterThan(0.005);
  }
});

test("every packet gets an endpoint", () => {
  for (const size of sizes) {
    const [count, moduli] = [fewestOf(size), moduliIn(size)];
    const others = count === 1 ? 0 : (count - 1) * chanceOf(1, moduli, count);
    expect(chanceOf(0, moduli, count) + others).toBeCloseTo(1, 9);
  }
});

/**
 * Walks the draws as a packet does: the chance of a slot to be the one, where the first `count` are filled. Of slots
 * that every draw treats alike there are only the first, those below the class's fewest, and the others.
 */
function chances(moduli: readonly number[], count: number): Map<number, number> {
  const fewest = fewestOf(moduli[0] ?? 1);
  return new Map(
    [0, 1, fewest - 1, fewest, count - 1]
      .filter((slot) => slot < count)
      .map((slot) => [slot, chanceOf(slot, moduli, count)]),
  );
}

function chanceOf(slot: number, moduli: readonly number[], count: number): number {
  let [chance, undecided] = [0, 1];
  for (const modulus of moduli) {
    if (slot < modulus) chance += undecided / modulus;
    undecided *= 1 - Math.min(count, modulus) / modulus;
  }
  return chance;
}

function unevenness(each: ReadonlyMap<number, number>, count: number): number {
  return Math.max(...Array.from(each.values(), (chance) => Math.abs(chance * count - 1)));
}

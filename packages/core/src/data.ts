/** Equality, compact objects, and sorting in steps. */

import { isObject, type RawObject } from "@fairlead/base";

/** Structural equality of plain data (what JSON can hold). Property order means nothing. */
export function equal(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) return Array.isArray(b) && equalLists(a, b);
  return isObject(a) && isObject(b) && equalRecords(a, b);
}

export function equalLists(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) {
    if (!equal(a[i], b[i])) return false;
  }
  return true;
}

const NONE: readonly never[] = [];

/**
 * A list that is to be kept, without the room to grow that V8 gives to lists made by push, filter or flatMap (16 slots
 * and more); all empty ones are the same.
 */
export function compact<T>(list: readonly T[]): readonly T[] {
  return list.length === 0 ? NONE : list.slice();
}

/** Items after which others get their turn. */
export const TURN = 2_048;

/**
 * A stable sort that yields every `run` items or so, for lists that take longer than anybody should wait.
 *
 * @returns a sorted list; `list` itself stays as it is
 */
export function* sortInSteps<T>(
  list: readonly T[],
  compare: (a: T, b: T) => number,
  run = TURN,
): Generator<void, readonly T[]> {
  if (list.length <= run) return list.toSorted(compare);
  let sorted = list.slice();
  for (let at = 0; at < sorted.length; at += run) {
    const part = sorted.slice(at, at + run).sort(compare);
    for (const [i, item] of part.entries()) sorted[at + i] = item;
    yield;
  }
  for (let width = run; width < sorted.length; width *= 2) {
    const merged: T[] = [];
    for (let at = 0; at < sorted.length; at += 2 * width) {
      const [middle, end] = [Math.min(at + width, sorted.length), Math.min(at + 2 * width, sorted.length)];
      yield* merge(sorted, { at, middle, end }, compare, merged, run);
    }
    sorted = merged;
  }
  return sorted;
}

function equalRecords(a: Readonly<RawObject>, b: Readonly<RawObject>): boolean {
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  for (const key of keys) {
    if (!equal(a[key], b[key]) || !Object.hasOwn(b, key)) return false;
  }
  return true;
}

/** Two sorted neighbors: from `at` to `middle`, and from there to `end`. */
interface Neighbors {
  readonly at: number;
  readonly middle: number;
  readonly end: number;
}

function* merge<T>(
  from: readonly T[],
  { at, middle, end }: Neighbors,
  compare: (a: T, b: T) => number,
  into: T[],
  run: number,
): Generator<void> {
  let [left, right] = [at, middle];
  while (left < middle || right < end) {
    const takeLeft = right >= end || (left < middle && compare(from[left] as T, from[right] as T) <= 0);
    into.push(from[takeLeft ? left++ : right++] as T);
    if (into.length % run === 0) yield;
  }
}

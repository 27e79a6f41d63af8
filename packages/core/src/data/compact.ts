const NONE: readonly never[] = [];

/**
 * A list that is to be kept, without the room to grow that V8 gives to lists made by push, filter or flatMap (16 slots
 * and more); all empty ones are the same.
 */
export function compact<T>(list: readonly T[]): readonly T[] {
  return list.length === 0 ? NONE : list.slice();
}

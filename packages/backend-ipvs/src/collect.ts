/** Puts items behind those of a list; yields after each, as there may be more of them than a call has arguments. */
export function* collect<T>(items: Iterable<T>, into: T[]): Generator<void, void, void> {
  for (const item of items) {
    into.push(item);
    yield;
  }
}

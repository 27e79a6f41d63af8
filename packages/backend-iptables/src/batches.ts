/** Cuts a sequence into arrays of at most `size`, the last one shorter; an empty sequence gives none. */
export function* batches<T>(items: Iterable<T>, size: number): Generator<T[]> {
  for (const part of parts(items, size)) yield [...part];
}

/** The same without arrays: each part is to be read to its end before the next. */
export function* parts<T>(items: Iterable<T>, size: number): Generator<Iterable<T>> {
  const iterator = items[Symbol.iterator]();
  function* part(first: T): Generator<T> {
    yield first;
    for (let count = 1; count < size; count++) {
      const next = iterator.next();
      if (next.done === true) return;
      yield next.value;
    }
  }
  for (let next = iterator.next(); next.done !== true; next = iterator.next()) yield part(next.value);
}

/**
 * The longest beginning of a list that holds, where each beginning of one that holds does, too. The whole list is tried
 * first: mostly it does. Yields where `holds` does.
 *
 * @param holds is not asked about the empty beginning
 * @returns its length, 0 to `length`
 */
export function* longestPrefix(
  length: number,
  holds: (length: number) => Generator<void, boolean>,
): Generator<void, number> {
  if (length === 0 || (yield* holds(length))) return length;
  let good = 0;
  let bad = length;
  while (bad - good > 1) {
    const middle = (good + bad) >>> 1;
    if (yield* holds(middle)) good = middle;
    else bad = middle;
  }
  return good;
}

/**
 * Size classes: services whose endpoints are about as many share a chain, and a map with a slot for each endpoint. A
 * chain draws a slot of `size`; where it is empty, it draws again.
 *
 * Sizes are powers of two, and half as much more: 2, 3, 4, 6, 8, 12, 16, 24, …
 */
export function sizeAbove(count: number): number {
  const power = 2 ** Math.floor(Math.log2(Math.max(count, 1)));
  return [power, power * 1.5, power * 2].find((size) => size > count && Number.isInteger(size)) ?? 2 * power;
}

/** The fewest endpoints of a class, whose slots are all filled: those of the class two below. */
export function fewestOf(size: number): number {
  return Math.floor(size / 2);
}

/**
 * The class of a service: it enters one with room to grow, and stays while it fits, so that most changes of endpoints
 * change no rule and no chain.
 *
 * @param count endpoints, at least one
 * @param now the class that it is in, if it is in one
 */
export function sizeFor(count: number, now?: number): number {
  return now !== undefined && fewestOf(now) <= count && count <= now ? now : sizeAbove(count);
}

/** By how much of it an endpoint's chance may differ from 1/n. */
const UNEVEN = 0.005;

/** The fewest draws after which no endpoint's chance differs too much, for any number of endpoints of the class. */
export function drawsOf(size: number): number {
  let draws = 1;
  while (unevenness(size, draws) > UNEVEN) draws++;
  return draws;
}

/**
 * How far an endpoint's chance is from 1/n at most, as a part of it. All draws missed with the chance ((size − n) /
 * size) ^ draws; then the draw among the slots that are always filled favors these.
 */
function unevenness(size: number, draws: number): number {
  const fewest = fewestOf(size);
  let worst = 0;
  for (let count = fewest + 1; count <= size; count++) {
    const missed = (1 - count / size) ** draws;
    worst = Math.max(worst, missed, missed * (count / fewest - 1));
  }
  return worst;
}

/** What the rules of a class's chain draw of, one after the other; the last also catches a slot that went meanwhile. */
export function moduliOf(size: number): readonly number[] {
  const fewest = fewestOf(size);
  const draws: number[] = Array.from({ length: drawsOf(size) }, () => size);
  return fewest === 1 ? [...draws, 1] : [...draws, fewest, 1];
}

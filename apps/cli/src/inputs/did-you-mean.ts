import { distance } from "fastest-levenshtein";

/** As many are worth reading. */
const MOST = 3;

/**
 * Names that may have been meant: those with the same last part (`web` is in another namespace), else those that differ
 * in a few letters.
 *
 * @returns `; did you mean shop/web?`, or ""
 */
export function didYouMean(given: string, names: Iterable<string>): string {
  const all = [...names];
  const same = all.filter((name) => lastPart(name) === lastPart(given));
  const meant = same.length > 0 ? same.sort() : similar(given, all);
  return meant.length === 0 ? "" : `; did you mean ${meant.slice(0, MOST).join(" or ")}?`;
}

function similar(given: string, names: readonly string[]): readonly string[] {
  const most = Math.max(1, Math.floor(given.length / 4));
  return names
    .map((name) => ({ name, letters: distance(given, name) }))
    .filter(({ letters }) => letters <= most)
    .sort((a, b) => a.letters - b.letters || (a.name < b.name ? -1 : 1))
    .map(({ name }) => name);
}

function lastPart(name: string): string {
  return name.slice(name.indexOf("/") + 1);
}

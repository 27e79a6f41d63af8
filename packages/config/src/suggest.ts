import { distance } from "fastest-levenshtein";

/** The word nearest to `word`, where a slip of one or two letters (or of case) would explain it. */
export function closest(word: string, words: readonly string[]): string | undefined {
  const same = words.find((candidate) => candidate.toLowerCase() === word.toLowerCase());
  if (same !== undefined) return same;
  const allowed = word.length < 5 ? 1 : 2;
  const ranked = words
    .map((candidate) => ({ candidate, distance: distance(word, candidate) }))
    .filter((entry) => entry.distance <= allowed)
    .sort((a, b) => a.distance - b.distance);
  return ranked[0]?.candidate;
}

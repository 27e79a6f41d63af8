/** Gives equal strings as one string. Decoders take one so that ten thousand node names stay one string each. */
export type Intern = (text: string) => string;

/** Keeps strings apart: nothing is remembered. */
export const keepAsIs: Intern = (text) => text;

/**
 * An interner with a bounded memory.
 *
 * @param limit how many strings it remembers; it forgets them all when it is full
 */
export function createIntern(limit = 10_000): Intern {
  const known = new Map<string, string>();
  return (text) => {
    const first = known.get(text);
    if (first !== undefined) return first;
    if (known.size >= limit) known.clear();
    known.set(text, text);
    return text;
  };
}

/** What a tree may have at most. */
export interface TreeBounds {
  /** Levels of objects and lists. */
  readonly depth: number;
  /** Characters of its texts and names, and 4 for each other value. */
  readonly size: number;
}

/**
 * Why a value that was read is not a tree that can be walked and written: aliases of YAML can make one that contains
 * itself, or that is a thousand times as large as its text.
 *
 * @returns undefined: it is one
 */
export function treeProblem(value: unknown, bounds: TreeBounds): string | undefined {
  const path: unknown[] = [];
  let size = 0;
  const walk = (part: unknown): string | undefined => {
    size += typeof part === "string" ? part.length : 4;
    if (size > bounds.size) return `larger than ${bounds.size / 2 ** 20} MiB with its aliases`;
    if (typeof part !== "object" || part === null) return undefined;
    if (path.includes(part)) return "an alias stands inside what it refers to";
    if (path.length === bounds.depth) return `nested deeper than ${bounds.depth} levels`;
    path.push(part);
    for (const [key, child] of Object.entries(part)) {
      size += key.length;
      const problem = walk(child);
      if (problem !== undefined) return problem;
    }
    path.pop();
    return undefined;
  };
  return walk(value);
}

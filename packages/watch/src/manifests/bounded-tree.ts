import { maxDepth, maxObjectBytes, mebibytes } from "../limits.ts";
import { ManifestSyntaxError } from "./syntax-error.ts";

/**
 * The value itself, if it is a tree that can be walked and written: aliases can make one that contains itself, or that
 * is a thousand times as large as its text.
 *
 * @throws ManifestSyntaxError
 */
export function boundedTree(value: unknown): unknown {
  const path: unknown[] = [];
  let size = 0;
  const walk = (part: unknown): void => {
    size += typeof part === "string" ? part.length : 4;
    if (size > maxObjectBytes)
      throw new ManifestSyntaxError(`larger than ${mebibytes(maxObjectBytes)} with its aliases`);
    if (typeof part !== "object" || part === null) return;
    if (path.includes(part)) throw new ManifestSyntaxError("an alias stands inside what it refers to");
    if (path.length === maxDepth) throw new ManifestSyntaxError(`nested deeper than ${maxDepth} levels`);
    path.push(part);
    for (const [key, child] of Object.entries(part)) {
      size += key.length;
      walk(child);
    }
    path.pop();
  };
  walk(value);
  return value;
}

import { MAX_DEPTH, MAX_OBJECT_BYTES, mebibytes } from "../limits.ts";
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
    if (size > MAX_OBJECT_BYTES)
      throw new ManifestSyntaxError(`larger than ${mebibytes(MAX_OBJECT_BYTES)} with its aliases`);
    if (typeof part !== "object" || part === null) return;
    if (path.includes(part)) throw new ManifestSyntaxError("an alias stands inside what it refers to");
    if (path.length === MAX_DEPTH) throw new ManifestSyntaxError(`nested deeper than ${MAX_DEPTH} levels`);
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

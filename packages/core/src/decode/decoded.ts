import type { Problem } from "../problem.ts";

/**
 * What came of a raw object. Without `object` nothing of it is served; whatever was known under its name has to go.
 */
export interface Decoded<T> {
  /** As the object has them, unchecked: good for removing what was known under them, not for printing. */
  readonly namespace: string;
  /** As `namespace`. */
  readonly name: string;
  /** The decoded object; absent: nothing of it is served. */
  readonly object?: T;
  /** Why an object that is in order is not ours to serve (headless, ExternalName, another proxy's …). */
  readonly ignored?: string;
  /** What was skipped: parts of the object or, without `object`, all of it. */
  readonly problems: readonly Problem[];
}

import { leavesForGood } from "./rule-verdict.ts";
import { goesOnAlike, walkKey } from "./same-walk.ts";
import type { Walk, WalkContext } from "./walk.ts";

/**
 * What need not be compared of ways that leave a chain in which both were since it was entered: what the key has, and
 * which rules of the chain they met.
 */
const ANY: ReadonlySet<keyof Walk> = new Set(["source", "destination", "probability", "visits", "index"]);

/** The ways of a packet that are yet to be walked, the last first. */
export class PendingWalks {
  readonly #merged: boolean;
  readonly #walks: Walk[];
  /** Those that others may join. */
  readonly #leaving = new Map<string, Walk[]>();

  constructor(first: Walk, { merged }: Pick<WalkContext, "merged">) {
    this.#walks = [first];
    this.#merged = merged;
  }

  /** Takes a way; one that leaves its chain as another does joins that one, if ways are merged. */
  push(walk: Walk): void {
    if (this.#merged && walk.said !== undefined && leavesForGood(walk.said) && this.#joined(walk)) return;
    this.#walks.push(walk);
  }

  pop(): Walk | undefined {
    const walk = this.#walks.pop();
    // The last that was put on is the first of its key that goes.
    if (walk !== undefined && this.#leaving.size > 0) this.#forget(walk);
    return walk;
  }

  #joined(walk: Walk): boolean {
    const key = walkKey(walk);
    const leaving = this.#leaving.get(key) ?? [];
    const alike = leaving.find((one) => goesOnAlike(one, walk, ANY));
    if (alike === undefined) this.#leaving.set(key, [...leaving, walk]);
    else alike.probability += walk.probability;
    return alike !== undefined;
  }

  #forget(walk: Walk): void {
    const key = walkKey(walk);
    const left = this.#leaving.get(key)?.filter((one) => one !== walk) ?? [];
    if (left.length === 0) this.#leaving.delete(key);
    else this.#leaving.set(key, left);
  }
}

import { type IPFamily, type Rule, readRule, renderRule, ruleKey } from "@fairlead/netfilter";

/**
 * Compares rules as the tools print them with those that are wanted. Nearly always the texts are equal; where they are
 * not, another version of the tools may have printed the same rule otherwise.
 */
export class SameTexts {
  readonly #family: IPFamily;

  constructor(family: IPFamily) {
    this.#family = family;
  }

  /** Just these rules, in this order. */
  inOrder(found: readonly string[], wanted: readonly Rule[]): boolean {
    return (
      found.length === wanted.length && wanted.every((rule, at) => this.#isSame(found[at] ?? "", renderRule(rule)))
    );
  }

  /** All of these rules, among others. */
  contains(found: readonly string[], wanted: readonly Rule[]): boolean {
    const missing = wanted.map(renderRule).filter((text) => !found.includes(text));
    if (missing.length === 0) return true;
    const keys = new Set(found.map((text) => this.#key(text)));
    return missing.every((text) => keys.has(this.#key(text)));
  }

  /** Just these texts, in whatever order. */
  inAnyOrder(found: readonly string[], wanted: readonly string[]): boolean {
    if (found.length !== wanted.length) return false;
    const counts = new Map<string, number>();
    for (const text of wanted) counts.set(text, (counts.get(text) ?? 0) + 1);
    const others = found.filter((text) => !take(counts, text));
    if (others.length === 0) return true;
    const keys = new Map<string, number>();
    for (const text of others) keys.set(this.#key(text), (keys.get(this.#key(text)) ?? 0) + 1);
    return [...counts].every(([text, count]) => Array.from({ length: count }).every(() => take(keys, this.#key(text))));
  }

  /** These rules behind all others, in whatever order. */
  endsWith(found: readonly string[], wanted: readonly Rule[]): boolean {
    return this.inAnyOrder(found.slice(Math.max(0, found.length - wanted.length)), wanted.map(renderRule));
  }

  #isSame(found: string, wanted: string): boolean {
    return found === wanted || this.#key(found) === this.#key(wanted);
  }

  #key(text: string): string {
    return ruleKey(readRule(text, 0, this.#family));
  }
}

function take(counts: Map<string, number>, text: string): boolean {
  const count = counts.get(text) ?? 0;
  if (count === 0) return false;
  counts.set(text, count - 1);
  return true;
}

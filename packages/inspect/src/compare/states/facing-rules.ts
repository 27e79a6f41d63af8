import { type Heading, mayMatch, type RuleFacts } from "./rule-facts.ts";

/**
 * Finds in a chain the rules that packets to few places may match: dispatch chains have tens of thousands for others.
 */
export class FacingRules {
  /** For any place, as far as it can be told at a glance. */
  readonly #general: RuleFacts[] = [];
  readonly #byHost = new Map<string, RuleFacts[]>();
  /** Of those that are for any address. */
  readonly #byPort = new Map<number, RuleFacts[]>();

  constructor(rules: readonly RuleFacts[]) {
    for (const rule of rules) {
      if (rule.host !== undefined) listAt(this.#byHost, rule.host).push(rule);
      else if (rule.port !== undefined) listAt(this.#byPort, rule.port).push(rule);
      else this.#general.push(rule);
    }
  }

  /** Those that packets of a protocol to one of these places may match, in their order. */
  of(protocol: string, headings: readonly Heading[]): readonly RuleFacts[] {
    const found = new Set(this.#general.filter((rule) => headings.some((one) => mayMatch(rule, protocol, one))));
    if (this.#byHost.size + this.#byPort.size === 0) return [...found];
    for (const heading of headings) {
      const own = [...(this.#byHost.get(heading.address) ?? []), ...(this.#byPort.get(heading.port) ?? [])];
      for (const rule of own) if (mayMatch(rule, protocol, heading)) found.add(rule);
    }
    return [...found].sort((a, b) => a.index - b.index);
  }
}

function listAt<Key>(lists: Map<Key, RuleFacts[]>, key: Key): RuleFacts[] {
  const known = lists.get(key) ?? [];
  lists.set(key, known);
  return known;
}

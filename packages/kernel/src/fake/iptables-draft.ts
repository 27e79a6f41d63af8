/** A table of iptables in memory, and the drafts that become it. */
import {
  BUILTIN_CHAINS,
  type ChainState,
  type Rule,
  renderRule,
  type Table,
  type TableState,
} from "@fairlead/netfilter";

/** A table as the kernel keeps it. Its chains are replaced, never changed. */
export class FakeTable {
  readonly name: Table;
  readonly chains = new Map<string, ChainState>();
  /** Chain → how many rules jump or go to it. */
  readonly references = new Map<string, number>();

  constructor(name: Table) {
    this.name = name;
    for (const chain of BUILTIN_CHAINS[name]) this.chains.set(chain, { name: chain, policy: "ACCEPT", rules: [] });
  }

  isBuiltin(chain: string): boolean {
    return BUILTIN_CHAINS[this.name].includes(chain);
  }

  /** As iptables-save prints it: built-in chains first, the others by name. */
  state(): TableState {
    const own = [...this.chains.values()].filter(({ name }) => !this.isBuiltin(name));
    own.sort((a, b) => (a.name < b.name ? -1 : 1));
    const chains = new Map<string, ChainState>();
    for (const name of BUILTIN_CHAINS[this.name]) chains.set(name, this.chains.get(name) ?? { name, rules: [] });
    for (const chain of own) chains.set(chain.name, chain);
    return { table: this.name, chains };
  }
}

/** Work on a copy of a table, which is invisible until `commit`. Copies just what it changes. */
export class TableDraft {
  readonly table: FakeTable;
  /** undefined: deleted. */
  readonly #chains = new Map<string, { readonly chain: ChainState; readonly rules: Rule[] } | undefined>();
  /** What is added to the table's `references`. */
  readonly #references = new Map<string, number>();

  constructor(table: FakeTable) {
    this.table = table;
  }

  chain(name: string): ChainState | undefined {
    return this.#chains.has(name) ? this.#chains.get(name)?.chain : this.table.chains.get(name);
  }

  /** Whether a rule leads to the chain. */
  isReferred(name: string): boolean {
    return (this.table.references.get(name) ?? 0) + (this.#references.get(name) ?? 0) > 0;
  }

  create(name: string): void {
    const rules: Rule[] = [];
    this.#chains.set(name, { chain: { name, rules }, rules });
  }

  setPolicy(name: string, policy: "ACCEPT" | "DROP"): void {
    const rules = this.#writable(name);
    this.#chains.set(name, { chain: { name, policy, rules }, rules });
  }

  insert(name: string, index: number, rule: Rule): void {
    this.#writable(name).splice(index, 0, rule);
    this.#refer(rule, 1);
  }

  /** Takes the first equal rule away; false: there is none. */
  remove(name: string, rule: Rule): boolean {
    const text = ruleText(rule);
    const index = this.chain(name)?.rules.findIndex((present) => ruleText(present) === text) ?? -1;
    if (index < 0) return false;
    this.#writable(name).splice(index, 1);
    this.#refer(rule, -1);
    return true;
  }

  flush(name: string): void {
    for (const rule of this.#writable(name).splice(0)) this.#refer(rule, -1);
  }

  delete(name: string): void {
    this.flush(name);
    this.#chains.set(name, undefined);
  }

  /** Makes the draft the table. */
  commit(): void {
    for (const [name, copy] of this.#chains) {
      if (copy === undefined) this.table.chains.delete(name);
      else this.table.chains.set(name, copy.chain);
    }
    const { references } = this.table;
    for (const [name, change] of this.#references) references.set(name, (references.get(name) ?? 0) + change);
  }

  #writable(name: string): Rule[] {
    const copied = this.#chains.get(name);
    if (copied !== undefined) return copied.rules;
    const chain = this.table.chains.get(name) ?? { name, rules: [] };
    const rules = [...chain.rules];
    this.#chains.set(name, { chain: { ...chain, rules }, rules });
    return rules;
  }

  #refer(rule: Rule, difference: 1 | -1): void {
    const target = jumpOf(rule);
    if (target !== undefined) this.#references.set(target, (this.#references.get(target) ?? 0) + difference);
  }
}

export function jumpOf(rule: Rule): string | undefined {
  return rule.target?.kind === "jump" || rule.target?.kind === "goto" ? rule.target.chain : undefined;
}

const texts = new WeakMap<Rule, string>();

/** The same for equal rules; what the parsers give is canonical. */
function ruleText(rule: Rule): string {
  const known = texts.get(rule);
  if (known !== undefined) return known;
  const text = renderRule(rule);
  texts.set(rule, text);
  return text;
}

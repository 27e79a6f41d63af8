import { compareRuleSets, type Rule, type RuleSetDifference, type SavedChain, type Table } from "@fairlead/netfilter";

/** How two chains differ in meaning; chains of equal text do not, and are not even read. */
export function compareChain(table: Table, expected: SavedChain, actual: SavedChain): readonly RuleSetDifference[] {
  if (expected.hasTextsOf(actual)) return [];
  if (expected.texts.length < LONG) return compare(table, expected.name, expected.rules, actual.rules);
  return compareByDestination(table, expected, actual);
}

const LONG = 64;

function sameTexts(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, at) => text === b[at]);
}

function compare(table: Table, name: string, expected: readonly Rule[], actual: readonly Rule[]) {
  const ruleSet = (rules: readonly Rule[]) => new Map([[table, { table, chains: new Map([[name, { name, rules }]]) }]]);
  return compareRuleSets(ruleSet(expected), ruleSet(actual));
}

/** Rules for one host's address, and those for more. */
interface Sorted {
  readonly hosts: ReadonlyMap<string, readonly Entry[]>;
  readonly general: readonly Entry[];
  /** No rule for a host comes after one for more. */
  readonly generalLast: boolean;
}

interface Entry {
  readonly rule: Rule;
  readonly text: string;
}

/**
 * Dispatch chains have thousands of rules, each for an address of its own, which may stand in any order: only those of
 * one address are compared with each other, as long as what is for all addresses stands at the end.
 */
function compareByDestination(table: Table, expected: SavedChain, actual: SavedChain): readonly RuleSetDifference[] {
  const [wanted, found] = [sorted(expected), sorted(actual)];
  if (!wanted.generalLast || !found.generalLast) return compare(table, expected.name, expected.rules, actual.rules);
  const addresses = new Set([...wanted.hosts.keys(), ...found.hosts.keys()]);
  const pairs = Array.from(
    addresses,
    (address) => [wanted.hosts.get(address) ?? [], found.hosts.get(address) ?? []] as const,
  );
  return [...pairs, [wanted.general, found.general] as const].flatMap(([before, after]) => {
    if (sameTexts(before.map(entryText), after.map(entryText))) return [];
    return compare(table, expected.name, before.map(ruleOf), after.map(ruleOf));
  });
}

const entryText = ({ text }: Entry) => text;
const ruleOf = ({ rule }: Entry) => rule;

function sorted({ rules, texts }: SavedChain): Sorted {
  const hosts = new Map<string, Entry[]>();
  const general: Entry[] = [];
  let generalLast = true;
  rules.forEach((rule, at) => {
    const entry = { rule, text: texts[at] ?? "" };
    const { cidr = "", negated = false } = rule.destination ?? {};
    if (negated || !/\/(?:32|128)$/.test(cidr)) {
      general.push(entry);
      return;
    }
    if (general.length > 0) generalLast = false;
    const known = hosts.get(cidr);
    if (known === undefined) hosts.set(cidr, [entry]);
    else known.push(entry);
  });
  return { hosts, general, generalLast };
}

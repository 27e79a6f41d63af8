/** How a table differs from the wanted one, as data: verify shows it, and a repair is made of it. */

import {
  NftBatch,
  type NftChain,
  type NftFlowtable,
  type NftSet,
  type NftTable,
  type SetElement,
  type Verdict,
} from "@fairlead/netfilter/nft";

/** A part that is missing, that is there and not wanted, or that is other than wanted. */
type Part<Name extends string, T> =
  | { readonly object: Name; readonly kind: "missing"; readonly wanted: T }
  | { readonly object: Name; readonly kind: "extra"; readonly found: T }
  | { readonly object: Name; readonly kind: "different"; readonly wanted: T; readonly found: T };

/** What a table of the kernel lacks of the one that is wanted, or has besides. */
export type TableDifference =
  | { readonly object: "table"; readonly kind: "missing" | "dormant" }
  /** Different: at another hook, with another priority or policy. */
  | Part<"chain", NftChain>
  /** Different: of another type. */
  | Part<"set", NftSet>
  /** Different: with another priority, or without a counter. */
  | Part<"flowtable", NftFlowtable>
  | ElementsDifference
  | { readonly object: "rules"; readonly kind: "different"; readonly wanted: NftChain; readonly found: NftChain };

interface ElementsDifference {
  readonly object: "elements";
  readonly kind: "different";
  readonly wanted: NftSet;
  readonly found: NftSet;
  readonly missing: readonly SetElement[];
  readonly different: readonly { readonly wanted: SetElement; readonly found: SetElement }[];
  readonly extra: readonly SetElement[];
}

/** What counts as the same. */
export interface Sameness {
  /** Equal for chains with the same rules. */
  readonly rulesKey: (chain: NftChain, table: NftTable) => string;
  /** Of elements with the same key. */
  readonly sameValue: (wanted: SetElement, found: SetElement, sets: { wanted: NftSet; found: NftSet }) => boolean;
  /** Sets that are not looked at. */
  readonly ignores?: (set: NftSet) => boolean;
}

/** As the agent writes it. */
const AS_WRITTEN: Sameness = { rulesKey: (chain) => canonical(rulesOf(chain)), sameValue: hasValue };

/**
 * Compares chains, rules, sets, elements and flowtables, but neither comments nor what packets put into sets.
 * A step is an element.
 *
 * @param found undefined: there is no such table
 */
export function* differencesOf(
  wanted: NftTable,
  found: NftTable | undefined,
  same: Sameness = AS_WRITTEN,
): Generator<void, readonly TableDifference[]> {
  if (found === undefined) return [{ object: "table", kind: "missing" }];
  const counted = ({ sets }: NftTable) => new Map([...sets].filter(([, set]) => same.ignores?.(set) !== true));
  const [sets, foundSets] = [counted(wanted), counted(found)];
  const differences: TableDifference[] = [
    ...(found.dormant ? [{ object: "table", kind: "dormant" } as const] : []),
    ...partsOf("chain", wanted.chains, found.chains, ({ base }) => canonical(base)),
    ...partsOf("set", sets, foundSets, setFacts),
    ...partsOf("flowtable", wanted.flowtables, found.flowtables, flowtableFacts),
  ];
  for (const set of sets.values()) {
    const there = foundSets.get(set.name);
    if (there === undefined || !isWritten(set) || !isWritten(there) || setFacts(set) !== setFacts(there)) continue;
    const elements = yield* elementsDifference(set, there, same);
    if (elements !== undefined) differences.push(elements);
  }
  for (const chain of wanted.chains.values()) {
    const there = found.chains.get(chain.name);
    if (there === undefined || same.rulesKey(chain, wanted) === same.rulesKey(there, found)) continue;
    differences.push({ object: "rules", kind: "different", wanted: chain, found: there });
  }
  return differences;
}

/** How a table differs from what was written into it. */
export interface Damage {
  /** In words, at least one. */
  readonly what: readonly string[];
  /** The transaction that puts it right; undefined: the table has to be made anew. */
  readonly repair?: NftBatch;
}

/**
 * What of the differences packets meet: chains that are not at a hook and sets that were not written do nothing.
 *
 * @returns undefined: nothing differs
 */
export function* damageOf(wanted: NftTable, found: NftTable | undefined): Generator<void, Damage | undefined> {
  const repair = new NftBatch(wanted.family, wanted.name);
  const differences = yield* differencesOf(wanted, found);
  const what: string[] = [];
  let repairable = true;
  for (const one of differences) {
    const text = textOf(one);
    if (text === undefined) continue;
    what.push(text);
    repairable = addRepair(one, repair) && repairable;
  }
  return what.length === 0 ? undefined : { what, ...(repairable && { repair }) };
}

/** @returns undefined: it does nothing to packets */
function textOf(one: TableDifference): string | undefined {
  switch (one.object) {
    case "table":
      return `the table is ${one.kind}`;
    case "chain":
      if (one.kind === "missing") return `chain ${one.wanted.name} is missing`;
      if (one.kind === "different") return `chain ${one.wanted.name} has another hook, priority or policy`;
      return one.found.base && `chain ${one.found.name} is at the hook ${one.found.base.hook}`;
    case "set":
      if (one.kind === "extra") return undefined;
      return `set ${one.wanted.name} ${one.kind === "missing" ? "is missing" : "has another type"}`;
    case "flowtable":
      if (one.kind === "extra") return undefined;
      return `flowtable ${one.wanted.name} ${one.kind === "missing" ? "is missing" : "has another priority or no counter"}`;
    case "elements": {
      const counts = [
        [one.missing.length, "missing"],
        [one.different.length, "different"],
        [one.extra.length, "too many"],
      ] as const;
      const texts = counts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`);
      return `set ${one.wanted.name} differs in its elements (${texts.join(", ")})`;
    }
    case "rules": {
      const { wanted, found } = one;
      return `chain ${wanted.name} differs in its rules (${found.rules.length}, expected ${wanted.rules.length})`;
    }
  }
}

/** @returns false: no transaction puts it right that leaves the table in place */
function addRepair(one: TableDifference, repair: NftBatch): boolean {
  if (one.object === "rules") {
    repair.flushChain(one.wanted.name);
    for (const rule of one.wanted.rules) repair.addRule(one.wanted.name, rule);
    return true;
  }
  if (one.object !== "elements") return false;
  const { wanted, missing, different, extra } = one;
  if (wanted.flags.includes("interval")) {
    repair.flushSet(wanted.name).addElements(wanted.name, wanted.elements.values());
    return true;
  }
  const replaced = different.map((pair) => pair.wanted);
  const deleted = [...extra, ...replaced].map(({ key }) => key);
  if (deleted.length > 0) repair.deleteElements(wanted.name, deleted);
  if (missing.length + replaced.length > 0) repair.addElements(wanted.name, [...missing, ...replaced]);
  return true;
}

/** @param factsOf equal for parts that are the same, what is in them aside */
function* partsOf<Name extends string, T>(
  object: Name,
  wanted: ReadonlyMap<string, T> = new Map(),
  found: ReadonlyMap<string, T> = new Map(),
  factsOf: (part: T) => string,
): Generator<Part<Name, T>> {
  for (const [name, part] of wanted) {
    const there = found.get(name);
    if (there === undefined) yield { object, kind: "missing", wanted: part };
    else if (factsOf(part) !== factsOf(there)) yield { object, kind: "different", wanted: part, found: there };
  }
  for (const [name, part] of found) if (!wanted.has(name)) yield { object, kind: "extra", found: part };
}

function* elementsDifference(
  wanted: NftSet,
  found: NftSet,
  { sameValue }: Sameness,
): Generator<void, ElementsDifference | undefined> {
  const sets = { wanted, found };
  const missing: SetElement[] = [];
  const different: { wanted: SetElement; found: SetElement }[] = [];
  for (const [key, element] of wanted.elements) {
    const there = found.elements.get(key);
    if (there === undefined) missing.push(element);
    else if (!sameValue(element, there, sets)) different.push({ wanted: element, found: there });
    yield;
  }
  const extra: SetElement[] = [];
  for (const [key, element] of found.elements) {
    if (!wanted.elements.has(key)) extra.push(element);
    yield;
  }
  if (missing.length + different.length + extra.length === 0) return undefined;
  return { object: "elements", kind: "different", ...sets, missing, different, extra };
}

function hasValue({ value: wanted }: SetElement, { value }: SetElement): boolean {
  if (typeof value !== "object" || typeof wanted !== "object") return value === wanted;
  const chainOf = (verdict: Verdict) => ("chain" in verdict ? verdict.chain : undefined);
  return value.kind === wanted.kind && chainOf(value) === chainOf(wanted);
}

/** Whether all that is in it was written, nothing by packets. */
function isWritten({ flags }: NftSet): boolean {
  return !flags.includes("dynamic");
}

function rulesOf({ rules }: NftChain): unknown {
  return rules.map(({ expressions }) => expressions);
}

function setFacts({ key, data, flags, timeout }: NftSet): string {
  return canonical({ key, data, flags: flags.toSorted(), timeout });
}

/** What of a flowtable no transaction changes; devices are compared by `FlowtableDevices`. */
function flowtableFacts({ priority, counter }: NftFlowtable): string {
  return canonical([priority, counter ?? false]);
}

/** The same text for the same data, in whatever order its properties stand. */
function canonical(value: unknown): string {
  return (
    JSON.stringify(value, (_, part: unknown) => {
      if (typeof part === "bigint") return String(part);
      if (typeof part !== "object" || part === null || Array.isArray(part)) return part;
      return Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)));
    }) ?? ""
  );
}

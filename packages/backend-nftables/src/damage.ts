import {
  NftBatch,
  type NftChain,
  type NftFlowtable,
  type NftSet,
  type NftTable,
  type SetElement,
  type Verdict,
} from "@fairlead/netfilter/nft";

/** How a table differs from what was written into it. */
export interface Damage {
  /** In words, at least one. */
  readonly what: readonly string[];
  /** The transaction that puts it right; undefined: the table has to be made anew. */
  readonly repair?: NftBatch;
}

/**
 * Compares what packets meet. Comments make no difference, nor do chains and sets that were not written and that no
 * packet reaches, nor what packets put into sets themselves. A step is an element.
 *
 * @param found undefined: there is no such table
 * @returns undefined: nothing differs
 */
export function* damageOf(wanted: NftTable, found: NftTable | undefined): Generator<void, Damage | undefined> {
  if (found === undefined) return { what: ["the table is missing"] };
  const broken = [...brokenFrame(wanted, found)];
  const repair = new NftBatch(wanted.family, wanted.name);
  const what: string[] = [];
  for (const set of wanted.sets.values()) {
    const there = found.sets.get(set.name);
    if (there !== undefined && isWritten(set)) what.push(...(yield* repairSet(set, there, repair)));
  }
  for (const chain of wanted.chains.values()) {
    const there = found.chains.get(chain.name);
    if (there === undefined || canonical(rulesOf(chain)) === canonical(rulesOf(there))) continue;
    what.push(`chain ${chain.name} differs in its rules (${there.rules.length}, expected ${chain.rules.length})`);
    repair.flushChain(chain.name);
    for (const rule of chain.rules) repair.addRule(chain.name, rule);
  }
  if (broken.length > 0) return { what: [...broken, ...what] };
  return what.length === 0 ? undefined : { what, repair };
}

/** What no transaction puts right that leaves the table in place. */
function* brokenFrame(wanted: NftTable, found: NftTable): Generator<string> {
  if (found.dormant) yield "the table is dormant";
  for (const { name, base } of wanted.chains.values()) {
    const there = found.chains.get(name);
    if (there === undefined) yield `chain ${name} is missing`;
    else if (canonical(there.base) !== canonical(base)) yield `chain ${name} has another hook, priority or policy`;
  }
  for (const { name, base } of found.chains.values()) {
    if (base !== undefined && !wanted.chains.has(name)) yield `chain ${name} is at the hook ${base.hook}`;
  }
  for (const set of wanted.sets.values()) {
    const there = found.sets.get(set.name);
    if (there === undefined) yield `set ${set.name} is missing`;
    else if (canonical(kindOf(there)) !== canonical(kindOf(set))) yield `set ${set.name} has another type`;
  }
  yield* brokenFlowtables(wanted, found);
}

function* brokenFlowtables(wanted: NftTable, found: NftTable): Generator<string> {
  for (const [name, flowtable] of wanted.flowtables ?? []) {
    const there = found.flowtables?.get(name);
    if (there === undefined) yield `flowtable ${name} is missing`;
    else if (canonical(flowtableFacts(there)) !== canonical(flowtableFacts(flowtable)))
      yield `flowtable ${name} has another priority or no counter`;
  }
}

/** What of a flowtable no transaction changes; devices are compared by `FlowtableDevices`. */
function flowtableFacts(flowtable: NftFlowtable | undefined): unknown {
  return flowtable && [flowtable.priority, flowtable.counter ?? false];
}

/** Writes what a set lacks, and deletes what is too much. */
function* repairSet(wanted: NftSet, found: NftSet, repair: NftBatch): Generator<void, readonly string[]> {
  const missing: SetElement[] = [];
  const different: SetElement[] = [];
  for (const [key, element] of wanted.elements) {
    const there = found.elements.get(key);
    if (there === undefined) missing.push(element);
    else if (!hasValue(there, element)) different.push(element);
    yield;
  }
  const extra: SetElement[] = [];
  for (const [key, element] of found.elements) {
    if (!wanted.elements.has(key)) extra.push(element);
    yield;
  }
  const counts = [
    [missing.length, "missing"],
    [different.length, "different"],
    [extra.length, "too many"],
  ] as const;
  const told = counts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`);
  if (told.length === 0) return [];
  if (wanted.flags.includes("interval"))
    repair.flushSet(wanted.name).addElements(wanted.name, wanted.elements.values());
  else {
    const deleted = [...extra, ...different].map(({ key }) => key);
    if (deleted.length > 0) repair.deleteElements(wanted.name, deleted);
    if (missing.length + different.length > 0) repair.addElements(wanted.name, [...missing, ...different]);
  }
  return [`set ${wanted.name} differs in its elements (${told.join(", ")})`];
}

function hasValue({ value }: SetElement, { value: wanted }: SetElement): boolean {
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

function kindOf({ key, data, flags, timeout }: NftSet): unknown {
  return { key, data, flags: flags.toSorted(), timeout };
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

import { type Command, renderRule } from "@fairlead/netfilter";
import { append, remove } from "./commands.ts";
import type { DispatchRule } from "./dispatch.ts";

/** Single rules to add to and to delete from the shared chains. */
export interface DispatchChange {
  /** Rules that refuse packets come before nat stops to send those on, … */
  readonly filterFirst: Command[];
  readonly nat: Command[];
  /** … and go after nat has begun to. */
  readonly filterLast: Command[];
}

/** Adds what it takes to get from a group's dispatch rules to its new ones. */
export function addDispatchChange(
  before: readonly DispatchRule[],
  after: readonly DispatchRule[],
  change: DispatchChange,
): void {
  const [old, wanted] = [byKey(before), byKey(after)];
  for (const key of new Set([...old.keys(), ...wanted.keys()])) {
    replaceRules(old.get(key) ?? [], wanted.get(key) ?? [], change);
  }
}

function byKey(rules: readonly DispatchRule[]): ReadonlyMap<string, readonly DispatchRule[]> {
  return Map.groupBy(rules, ({ key }) => key);
}

/** Rules about the same packets, in the same chain: where one differs, all of them are written in their order. */
function replaceRules(before: readonly DispatchRule[], after: readonly DispatchRule[], change: DispatchChange): void {
  if (rulesText(before) === rulesText(after)) return;
  if ((before[0] ?? after[0])?.table === "nat") {
    change.nat.push(...before.map(removal), ...additions(after));
    return;
  }
  const { kept, gone } = partition(before, after);
  change.filterFirst.push(...kept.map(removal), ...additions(after));
  change.filterLast.push(...gone.map(removal));
}

/** Which rules of `before` stand in `after` too, each copy counted. */
function partition(before: readonly DispatchRule[], after: readonly DispatchRule[]) {
  const left = after.map(({ rule }) => renderRule(rule));
  const kept: DispatchRule[] = [];
  const gone: DispatchRule[] = [];
  for (const entry of before) {
    const index = left.indexOf(renderRule(entry.rule));
    if (index !== -1) left.splice(index, 1);
    (index === -1 ? gone : kept).push(entry);
  }
  return { kept, gone };
}

function removal({ chain, rule }: DispatchRule): Command {
  return remove(chain, rule);
}

function additions(rules: readonly DispatchRule[]): readonly Command[] {
  return rules.map(({ chain, rule, end }, index) =>
    end === "tail" ? append(chain, rule) : { kind: "insert", chain, position: index + 1, rule },
  );
}

function rulesText(rules: readonly DispatchRule[]): string {
  return rules.map(({ rule }) => renderRule(rule)).join("\n");
}

import { type TrafficChange, type TrafficDifference, type TrafficOutcome, waysText } from "@fairlead/inspect";
import type { RuleSetDifference } from "@fairlead/netfilter";
import type { Style } from "../../frame/style.ts";
import type { TableDifference } from "./tables.ts";

/** What differs, for people: packets, then rules. */
export function diffText(
  { compared, changes, masqueraded }: TrafficDifference,
  { rules, tables }: { readonly rules: readonly RuleSetDifference[]; readonly tables: readonly TableDifference[] },
  style: Style,
): string {
  const kinds = `${compared} ${compared === 1 ? "kind" : "kinds"} of packets traced`;
  const head =
    changes.length === 0 ? `Traffic: ${style.good("the same")}, ${kinds}` : `Traffic that changes (${kinds}):`;
  const lines = [head, ...changes.map((one) => changeText(one, style))];
  if (masqueraded > 0)
    lines.push(`${masqueraded} of them are masqueraded by other programs, which makes no difference`);
  const differing = [...rules.flatMap((one) => ruleLines(one, style)), ...tables.map((one) => tableLine(one, style))];
  if (differing.length > 0) lines.push("", "Rules:", ...differing);
  return `${lines.join("\n")}\n`;
}

function changeText({ destination, from, before, after }: TrafficChange, style: Style): string {
  const who = `  ${style.bold(destination)} from ${from.join(", ")}`;
  return `${who}\n    ${style.bad(`- ${fateText(before)}`)}\n    ${style.good(`+ ${fateText(after)}`)}`;
}

function fateText(fate: TrafficOutcome): string {
  return "problem" in fate ? `unknown: ${fate.problem}` : waysText(fate.ways);
}

/** A fate as JSON. */
export function fateData(fate: TrafficOutcome) {
  return "problem" in fate ? fate : { ways: Object.fromEntries(fate.ways) };
}

function ruleLines(difference: RuleSetDifference, style: Style): readonly string[] {
  const where = `  ${difference.table} ${difference.chain}`;
  switch (difference.kind) {
    case "chain-missing":
      return [style.bad(`${where}: - the chain`)];
    case "chain-extra":
      return [style.good(`${where}: + the chain`)];
    case "rule-missing":
      return [style.bad(`${where}: - ${difference.rule}`)];
    case "rule-extra":
      return [style.good(`${where}: + ${difference.rule}`)];
    case "policy":
      return [`${where}: policy ${difference.expected} → ${difference.actual}`];
    case "order":
      return [`${where}: in the other order: ${difference.first} and ${difference.second}`];
  }
}

function tableLine({ table, kind, where, what }: TableDifference, style: Style): string {
  const place = `  ${table} ${where}`;
  if (kind === "missing") return style.bad(`${place}: - ${what}`);
  return kind === "extra" ? style.good(`${place}: + ${what}`) : `${place}: ${what}`;
}

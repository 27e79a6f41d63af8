import { type Fate, type TrafficChange, type TrafficDifference, waysText } from "@fairlead/compare";
import type { RuleSetDifference } from "@fairlead/netfilter";
import type { Style } from "../../frame/style.ts";

/** What differs, for people: packets, then rules. */
export function diffText(
  { compared, changes }: TrafficDifference,
  rules: readonly RuleSetDifference[],
  style: Style,
): string {
  const kinds = `${compared} ${compared === 1 ? "kind" : "kinds"} of packets traced`;
  const head =
    changes.length === 0 ? `Traffic: ${style.good("the same")}, ${kinds}` : `Traffic that changes (${kinds}):`;
  const lines = [head, ...changes.map((one) => changeText(one, style))];
  if (rules.length > 0) lines.push("", "Rules:", ...rules.flatMap((one) => ruleLines(one, style)));
  return `${lines.join("\n")}\n`;
}

function changeText({ destination, from, before, after }: TrafficChange, style: Style): string {
  const who = `  ${style.bold(destination)} from ${from.join(", ")}`;
  return `${who}\n    ${style.bad(`- ${fateText(before)}`)}\n    ${style.good(`+ ${fateText(after)}`)}`;
}

function fateText(fate: Fate): string {
  return "problem" in fate ? `cannot be told: ${fate.problem}` : waysText(fate.ways);
}

/** A fate as JSON. */
export function fateData(fate: Fate) {
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

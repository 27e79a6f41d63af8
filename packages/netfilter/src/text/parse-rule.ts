import { canonicalCIDR } from "../rule/cidr.ts";
import { parseMatch } from "../rule/matches/index.ts";
import { negation } from "../rule/options.ts";
import { Problem } from "../rule/problem.ts";
import { canonicalProtocol } from "../rule/protocols.ts";
import type { RawOption } from "../rule/raw.ts";
import type { AddressMatch, IPFamily, NameMatch, Rule } from "../rule/rule.ts";
import type { Target } from "../rule/targets/index.ts";
import { parseTarget } from "../rule/targets/index.ts";
import { collect, type RawRule } from "./collect.ts";
import type { Words } from "./tokenize.ts";

/**
 * The rule that the words say, in canonical form.
 *
 * @param from the first word after the chain
 * @throws Problem when iptables would refuse it
 */
export function parseRuleWords(words: Words, from: number, family: IPFamily): Rule {
  const raw = collect(words, from);
  return {
    ...headerFields(raw.header),
    matches: raw.matches.map((match) => parseMatch(match, family)),
    ...targetField(raw, family),
  };
}

type HeaderFields = Omit<Rule, "matches" | "target">;

function headerFields(header: readonly RawOption[]): HeaderFields {
  return Object.assign({}, ...header.map(headerField));
}

function headerField(option: RawOption): HeaderFields {
  switch (option.name) {
    case "-s":
      return defined("source", address(option));
    case "-d":
      return defined("destination", address(option));
    case "-i":
      return defined("inInterface", interfaceName(option));
    case "-o":
      return defined("outInterface", interfaceName(option));
    case "-p":
      return defined("protocol", protocol(option));
    default:
      return { fragment: { negated: option.negated } };
  }
}

function defined<Key extends keyof HeaderFields>(key: Key, value: HeaderFields[Key]): HeaderFields {
  return value === undefined ? {} : { [key]: value };
}

/** A length of 0 matches everything and is left out, unless it is negated: then it matches nothing. */
function address(option: RawOption): AddressMatch | undefined {
  const cidr = canonicalCIDR(option.values[0] ?? "");
  return cidr.endsWith("/0") && !option.negated ? undefined : { ...negation(option), cidr };
}

/** `+` by itself stands for every interface. */
function interfaceName(option: RawOption): NameMatch | undefined {
  const value = option.values[0] ?? "";
  return value === "+" && !option.negated ? undefined : { ...negation(option), value };
}

function protocol(option: RawOption): NameMatch | undefined {
  const value = canonicalProtocol(option.values[0] ?? "");
  if (value !== undefined) return { ...negation(option), value };
  if (option.negated) throw new Problem(`! ${option.name} ${option.values[0]} can never match`);
  return undefined;
}

function targetField(raw: RawRule, family: IPFamily): { target?: Target } {
  if (raw.goto !== undefined) return { target: { kind: "goto", chain: raw.goto } };
  return raw.target === undefined ? {} : { target: parseTarget(raw.target, family) };
}

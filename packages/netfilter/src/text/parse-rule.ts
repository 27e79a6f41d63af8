/** Reads the words of one rule. */

import { matchOptions, parseMatch } from "../rule/matches.ts";
import { canonicalCIDR, canonicalProtocol } from "../rule/numbers.ts";
import { negation, Problem, type RawModule, type RawOption } from "../rule/options.ts";
import type { AddressMatch, IPFamily, NameMatch, Rule } from "../rule/rule.ts";
import { parseTarget, type Target, targetOptions } from "../rule/targets.ts";

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

/** The words of one line. A quoted word is never an option, whatever it says. */
export interface Words {
  readonly texts: string[];
  readonly quoted: boolean[];
}

const SPACE = 0x20;
const TAB = 0x09;

/**
 * Cuts a line as iptables-restore does (add_param_to_argv of xtables): only double quotes quote, a backslash escapes
 * within them only, and the closing quote ends the word.
 *
 * @param from where the words begin
 * @throws Problem for a quote that isn't closed
 */
export function tokenize(line: string, from = 0): Words {
  const words: Words = { texts: [], quoted: [] };
  let at = from;
  while (at < line.length) {
    const code = line.charCodeAt(at);
    at = code === SPACE || code === TAB ? at + 1 : takeWord(line, at, words);
  }
  return words;
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

/** The words of a rule, sorted by owner but not yet understood. */
interface RawRule {
  readonly header: RawOption[];
  readonly matches: RawModule[];
  target?: RawModule;
  goto?: string;
}

function targetField(raw: RawRule, family: IPFamily): { target?: Target } {
  if (raw.goto !== undefined) return { target: { kind: "goto", chain: raw.goto } };
  return raw.target === undefined ? {} : { target: parseTarget(raw.target, family) };
}

const HEADER_NAMES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    "-s": "-s",
    "--source": "-s",
    "--src": "-s",
    "-d": "-d",
    "--destination": "-d",
    "--dst": "-d",
    "-i": "-i",
    "--in-interface": "-i",
    "-o": "-o",
    "--out-interface": "-o",
    "-p": "-p",
    "--protocol": "-p",
    "--proto": "-p",
    "-f": "-f",
    "--fragment": "-f",
    "-m": "-m",
    "--match": "-m",
    "-j": "-j",
    "--jump": "-j",
    "-g": "-g",
    "--goto": "-g",
    "-c": "-c",
    "--set-counters": "-c",
  }),
);

const PORT_PROTOCOLS: ReadonlySet<string> = new Set(["tcp", "udp", "sctp"]);

/**
 * Gives each option to the match, target or header that it belongs to, wherever it stands in the rule: iptables-restore
 * takes `-m tcp -p tcp -d 10.0.0.1 --dport 80`.
 *
 * @param from the first word of the rule, after the chain
 */
function collect(words: Words, from: number): RawRule {
  return new Collector(words, from).collect();
}

class Collector {
  readonly #words: Words;
  readonly #raw: RawRule = { header: [], matches: [] };
  #at: number;
  /** The match or target that the last words belonged to; -d, -p and their kin end that. */
  #active: RawModule | undefined;
  #last: RawModule | undefined;

  constructor(words: Words, from: number) {
    this.#words = words;
    this.#at = from;
  }

  collect(): RawRule {
    while (this.#at < this.#words.texts.length) {
      const negated = this.#takeNegation();
      const name = this.#words.texts[this.#at];
      if (name === undefined) throw new Problem(`"!" stands before nothing`);
      if (!this.#isOption(this.#at)) throw new Problem(`unexpected word "${name}"`);
      this.#at += 1;
      this.#option(name, negated);
    }
    return this.#raw;
  }

  #takeNegation(): boolean {
    if (this.#words.texts[this.#at] !== "!" || this.#words.quoted[this.#at] === true) return false;
    this.#at += 1;
    return true;
  }

  #option(name: string, negated: boolean): void {
    const header = HEADER_NAMES.get(name);
    if (header === undefined) this.#moduleOption(name, negated);
    else this.#headerOption(header, negated);
  }

  #headerOption(name: string, negated: boolean): void {
    if (negated && (name === "-m" || name === "-j" || name === "-g" || name === "-c")) {
      throw new Problem(`"!" can't stand before ${name}`);
    }
    if (name === "-m") this.#open(this.#value(name), this.#raw.matches);
    else if (name === "-j" || name === "-g") this.#setTarget(name);
    else this.#addHeader(name, negated);
  }

  #addHeader(name: string, negated: boolean): void {
    this.#active = undefined;
    const count = name === "-f" ? 0 : name === "-c" ? 2 : 1;
    const values = Array.from({ length: count }, () => this.#value(name));
    if (name === "-c") return;
    if (this.#raw.header.some((option) => option.name === name)) throw new Problem(`duplicate ${name}`);
    this.#raw.header.push({ negated, name, values });
  }

  #setTarget(name: string): void {
    if (this.#raw.target !== undefined || this.#raw.goto !== undefined) throw new Problem("more than one target");
    const value = this.#value(name);
    if (name === "-g") this.#raw.goto = value;
    else {
      this.#raw.target = { name: value, options: [] };
      this.#active = this.#raw.target;
      this.#last = this.#active;
    }
  }

  #open(name: string, into: RawModule[]): RawModule {
    const module: RawModule = { name, options: [] };
    into.push(module);
    this.#active = module;
    this.#last = module;
    return module;
  }

  #moduleOption(name: string, negated: boolean): void {
    const owner = this.#owner(name);
    if (owner === undefined) throw new Problem(`option ${name} belongs to no match or target`);
    const count = this.#optionsOf(owner)?.get(name);
    const values = count === undefined ? this.#freeValues() : Array.from({ length: count }, () => this.#value(name));
    owner.options.push({ negated, name, values });
  }

  #owner(name: string): RawModule | undefined {
    const active = this.#active;
    if (active !== undefined && this.#mayOwn(active, name)) return active;
    const { matches, target } = this.#raw;
    const knowing = (target === undefined ? matches : [...matches, target]).find(
      (module) => this.#optionsOf(module)?.has(name) === true,
    );
    return knowing ?? this.#loadProtocol(name) ?? this.#last;
  }

  /** A module without a type takes whatever follows it. */
  #mayOwn(module: RawModule, name: string): boolean {
    const options = this.#optionsOf(module);
    return options === undefined ? true : options.has(name);
  }

  /** `-p tcp --dport 80` loads the match of the protocol by itself. */
  #loadProtocol(name: string): RawModule | undefined {
    const protocol = this.#raw.header.find((option) => option.name === "-p")?.values[0];
    if (protocol === undefined || !PORT_PROTOCOLS.has(protocol)) return undefined;
    if (matchOptions(protocol)?.has(name) !== true) return undefined;
    return this.#open(protocol, this.#raw.matches);
  }

  #optionsOf(module: RawModule): ReadonlyMap<string, number> | undefined {
    return (module === this.#raw.target ? targetOptions : matchOptions)(module.name);
  }

  #value(option: string): string {
    const value = this.#words.texts[this.#at];
    if (value === undefined) throw new Problem(`${option} needs a value`);
    this.#at += 1;
    return value;
  }

  #freeValues(): string[] {
    const values: string[] = [];
    while (this.#at < this.#words.texts.length && !this.#isOption(this.#at) && !this.#isNegation(this.#at)) {
      values.push(this.#value(""));
    }
    return values;
  }

  #isOption(at: number): boolean {
    return this.#words.quoted[at] === false && /^-(?:[a-zA-Z]$|-.)/.test(this.#words.texts[at] ?? "");
  }

  #isNegation(at: number): boolean {
    return this.#words.quoted[at] === false && this.#words.texts[at] === "!";
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

function takeWord(line: string, from: number, words: Words): number {
  for (let at = from; at < line.length; at++) {
    const code = line.charCodeAt(at);
    if (code === QUOTE) return takeQuoted(line, from, at, words);
    if (code === SPACE || code === TAB) {
      addWord(words, line.slice(from, at), false);
      return at;
    }
  }
  addWord(words, line.slice(from), false);
  return line.length;
}

/** @returns the place after the closing quote */
function takeQuoted(line: string, from: number, open: number, words: Words): number {
  let text = line.slice(from, open);
  let start = open + 1;
  for (let at = start; at < line.length; at++) {
    const code = line.charCodeAt(at);
    if (code === QUOTE) {
      addWord(words, text + line.slice(start, at), true);
      return at + 1;
    }
    if (code === BACKSLASH) {
      text += line.slice(start, at);
      at += 1;
      start = at;
    }
  }
  throw new Problem("a quote is not closed");
}

function addWord(words: Words, text: string, quoted: boolean): void {
  words.texts.push(text);
  words.quoted.push(quoted);
}

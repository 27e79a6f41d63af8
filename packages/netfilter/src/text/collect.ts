import { matchOptions } from "../rule/matches/index.ts";
import { Problem } from "../rule/problem.ts";
import type { RawModule, RawOption } from "../rule/raw.ts";
import { targetOptions } from "../rule/targets/index.ts";
import type { Words } from "./tokenize.ts";

/** The words of a rule, sorted by owner but not yet understood. */
export interface RawRule {
  readonly header: RawOption[];
  readonly matches: RawModule[];
  target?: RawModule;
  goto?: string;
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
export function collect(words: Words, from: number): RawRule {
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
    if (this.#raw.header.some((option) => option.name === name)) throw new Problem(`${name} stands there twice`);
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

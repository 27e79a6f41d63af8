/** The options of a match or a target as they are read. */

/** The options of a match or target by name; undefined when one of them is not in `typed` or a duplicate. */
export function typedOptions(raw: RawModule, typed: readonly string[]): ReadonlyMap<string, RawOption> | undefined {
  const options = new Map<string, RawOption>();
  for (const option of raw.options) {
    if (!typed.includes(option.name) || options.has(option.name)) return undefined;
    options.set(option.name, option);
  }
  return options;
}

/** The words as they stood in the rule. */
export function rawArgs(raw: RawModule): string[] {
  return raw.options.flatMap(({ negated, name, values }) => [...(negated ? ["!"] : []), name, ...values]);
}

/** `{ negated: true }` or nothing: absent and false are one canonical form. */
export function negation(option: RawOption): { readonly negated?: true } {
  return option.negated ? { negated: true } : {};
}

/** The one option of a match, which it can't do without; undefined when there are others alongside it. */
export function singleOption(raw: RawModule, name: string): RawOption | undefined {
  const options = typedOptions(raw, [name]);
  if (options === undefined) return undefined;
  const option = options.get(name);
  if (option === undefined) throw new Problem(`-m ${raw.name} needs ${name}`);
  return option;
}

/** ` !` before what is negated. */
export function not(match: { readonly negated?: boolean }): string {
  return match.negated === true ? " !" : "";
}

/** An option of a rule with its values, not yet understood. */
export interface RawOption {
  readonly negated: boolean;
  readonly name: string;
  readonly values: string[];
}

/** A match or target with the options that belong to it, in the order of the text. */
export interface RawModule {
  readonly name: string;
  readonly options: RawOption[];
}

export type { IPFamily } from "@fairlead/base";

/** A name that a rule compares, such as an interface or a protocol. */
export interface NameMatch {
  /** `!`: every name but this. */
  readonly negated?: boolean;
  /** The name as iptables-save writes it. */
  readonly value: string;
}

/** What is wrong with the line being read; the reader adds where it stands. */
export class Problem extends Error {}

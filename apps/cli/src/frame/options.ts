/** One option of a command: what help, completion and the reference say of it, and how its text is read. */
export interface OptionSpec<T> {
  /** A single letter. */
  readonly short?: string;
  /** What stands for the value in help, `FILE`; absent: the option is a switch. */
  readonly placeholder?: string;
  readonly help: string;
  readonly choices?: readonly string[];
  /** As help shows it. */
  readonly defaultText?: string;
  readonly repeatable?: boolean;
  /** What is said where its value is missing. Default: that it is. */
  readonly withoutValue?: string;
  /** What a shell offers for the value, choices aside. */
  readonly completes?: "path";
  /** @param texts the values in the order given; of a switch one empty text each time */
  readonly read: (texts: readonly string[]) => T;
}

export type OptionSpecs = Readonly<Record<string, OptionSpec<unknown>>>;

/** What a command gets of its options, by their long names. */
export type OptionValues<O extends OptionSpecs> = { readonly [K in keyof O]: ReturnType<O[K]["read"]> };

type Details = Pick<OptionSpec<unknown>, "short" | "completes" | "withoutValue">;

export function flag(help: string, details: Details = {}): OptionSpec<boolean> {
  return { ...details, help, read: (texts) => texts.length > 0 };
}

/** The last one given counts. */
export function text(
  placeholder: string,
  help: string,
  details: Details & { readonly defaultText?: string } = {},
): OptionSpec<string | undefined> {
  return { ...details, placeholder, help, read: (texts) => texts.at(-1) };
}

/** May be given more than once. */
export function list(placeholder: string, help: string, details: Details = {}): OptionSpec<readonly string[]> {
  return { ...details, placeholder, help, repeatable: true, read: (texts) => texts };
}

export function choice<const T extends string>(
  choices: readonly T[],
  otherwise: T,
  help: string,
  details: Details = {},
): OptionSpec<T> {
  const read = (texts: readonly string[]) => choices.find((one) => one === texts.at(-1)) ?? otherwise;
  return { ...details, placeholder: choices.join("|"), help, choices, defaultText: otherwise, read };
}

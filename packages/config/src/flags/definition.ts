/** A flag of the agent: how it is written, which field it sets, what --help says about it. */
export interface FlagDefinition {
  /** Without the dashes. */
  readonly name: string;
  readonly type: FlagType;
  /** Fields of the configuration documents that it sets; absent: an `Option` of the command line only. */
  readonly fields?: readonly string[];
  readonly document?: "fairlead";
  readonly help: string;
  /** Shown by --help; absent where the default is empty, false or depends on something. */
  readonly defaultText?: string;
  /** Counts although --config is given. */
  readonly withConfig?: true;
  /** Flags of Windows builds: known, refused here. */
  readonly windows?: true;
  /** Not in --help: what to use instead. */
  readonly deprecated?: string;
}

export interface FlagGroup {
  readonly title: string;
  readonly flags: readonly FlagDefinition[];
}

/** What a flag's text is turned into before the schema sees it, or what is wrong with the text. */
export type FlagValue = { readonly value: unknown } | { readonly problem: string };

export interface FlagType {
  /** In --help, as pflag prints it. */
  readonly placeholder: string;
  /** A flag without a value has this one: `--masquerade-all`. */
  readonly bare?: string;
  /** @param texts the values in the order given, at least one */
  read(texts: readonly [string, ...string[]]): FlagValue;
}

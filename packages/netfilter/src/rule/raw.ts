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

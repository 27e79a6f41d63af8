import type { AgentConfig } from "./types.ts";

/** One wrong value. */
export interface ConfigError {
  /** The flag (`--oom-score-adj`) or the file and its field (`/etc/config.conf: oomScoreAdj`). */
  readonly field: string;
  /** The value as it was given. */
  readonly value: string;
  /** What is wrong with it and what would be right. */
  readonly message: string;
}

/** What a command line comes to. */
export type ParseResult =
  | { readonly kind: "run"; readonly config: AgentConfig; readonly warnings: readonly string[] }
  /** For standard output, exit 0. */
  | { readonly kind: "help" | "version"; readonly text: string }
  /** For standard error, exit 2: a flag that does not exist or lacks its value, or an argument that is no flag. */
  | { readonly kind: "usage-error"; readonly message: string }
  /** For standard error, exit 1: every wrong value at once. */
  | { readonly kind: "invalid"; readonly errors: readonly ConfigError[]; readonly warnings: readonly string[] };

/** What parsing needs of the process that it runs in. */
export interface ParseEnvironment {
  /** Reads the file of --config. What it throws becomes an error that names the flag. */
  readonly readFile: (path: string) => string;
  /** Fairlead's own version, for --version. */
  readonly version: string;
  /**
   * Flags that override everything else, the file of --config included: what a user says of a proxy whose configuration
   * is known. Default: none.
   */
  readonly overrides?: readonly string[];
}

import type { Argv, FailureReason } from "@fairlead/kernel";

/** The form of archives; what reads them refuses others. */
export const FORMAT = 1;

/** Where files are in an archive. */
export const PATHS = {
  index: "index.json",
  readme: "README.md",
  objects: "objects.json",
  log: (node: string) => `nodes/${node}/log.txt`,
  previousLog: (node: string) => `nodes/${node}/previous-log.txt`,
  runs: (node: string) => `nodes/${node}/runs.json`,
  run: (node: string, file: string) => `nodes/${node}/kernel/${file}`,
  page: (node: string, page: string) => `nodes/${node}/agent${page}.txt`,
  connections: (node: string) => `nodes/${node}/connections.json`,
  verify: (node: string) => `nodes/${node}/verify.json`,
} as const;

/** Something that could not be read, or was too large. */
export interface Missing {
  readonly what: string;
  readonly why: string;
}

export interface NodeEntry {
  readonly name: string;
  /** Whether anything of its kernel or its agent is here. */
  readonly answered: boolean;
  readonly missing: readonly Missing[];
}

/** `index.json`; only JSON values. */
export interface SysdumpIndex {
  readonly format: typeof FORMAT;
  /** Of the `fairlead` that made it. */
  readonly version: string;
  /** ISO 8601. */
  readonly made: string;
  readonly nodes: readonly NodeEntry[];
  /** Of the cluster's objects. */
  readonly missing: readonly Missing[];
}

/** One program of `runs.json`: what it printed is in a file of its own. */
export type RunEntry =
  | { readonly argv: Argv; readonly file: string }
  | {
      readonly argv: Argv;
      readonly failure: { readonly reason: FailureReason; readonly exitCode?: number; readonly stderr?: string };
    };

/** `iptables-nft-save -t mangle` is `iptables-nft-save_-t_mangle.txt`. */
export function runFile(argv: Argv): string {
  return `${argv.join("_").replaceAll(/[^\w.-]+/g, "-")}.txt`;
}

/** The format of archives; what reads them refuses others. Format 1 had what programs printed. */
export const FORMAT = 2;

/** Where files are in an archive. */
export const PATHS = {
  index: "index.json",
  readme: "README.md",
  objects: "objects.json",
  log: (node: string) => `nodes/${node}/log.txt`,
  previousLog: (node: string) => `nodes/${node}/previous-log.txt`,
  /** A `NodeState`. */
  state: (node: string) => `nodes/${node}/state.json`,
  page: (node: string, page: string) => `nodes/${node}/agent${page}.txt`,
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

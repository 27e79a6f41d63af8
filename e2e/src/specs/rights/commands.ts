/** What a command line of the spec is made of. */
export interface Ground {
  /** Of the spec's service `web`. */
  readonly namespace: string;
  readonly node: string;
  /** A file that is not there yet. */
  readonly file: string;
}

export interface CommandLine {
  readonly argv: (ground: Ground) => readonly string[];
  /** It takes `-n`, and readers of one namespace give theirs. */
  readonly takesNamespace?: true;
  /** It takes the proxy's configuration as options, and readers that may not ask the proxy give it. */
  readonly takesConfiguration?: true;
}

const PLANNED = { takesNamespace: true, takesConfiguration: true } as const;
const CONFIGURED = { takesConfiguration: true } as const;

/** How an administrator asks first, with each command. */
export const COMMAND_LINES: Readonly<Record<string, CommandLine>> = {
  plan: { ...PLANNED, argv: ({ node }) => ["--node", node, "-o", "summary"] },
  explain: { ...PLANNED, argv: ({ namespace, node }) => [`${namespace}/web`, "--node", node] },
  diff: { ...CONFIGURED, argv: ({ node }) => ["cluster", "node", "--on", node, "--traffic-only"] },
  trace: { ...PLANNED, argv: ({ namespace, node }) => ["--from", "pod", "--to", `${namespace}/web`, "--on", node] },
  verify: { ...PLANNED, argv: () => ["--all-nodes"] },
  ownership: { ...PLANNED, argv: ({ node }) => ["--node", node] },
  flows: { ...PLANNED, argv: ({ node }) => ["--on", node] },
  top: { ...PLANNED, argv: ({ node }) => ["--on", node] },
  status: { ...PLANNED, argv: () => ["-o", "wide"] },
  doctor: { ...CONFIGURED, argv: ({ node }) => ["--on", node] },
  sysdump: { ...CONFIGURED, argv: ({ file }) => ["--output-file", file] },
  connectivity: { argv: () => ["--no-update"] },
  console: { ...CONFIGURED, argv: () => ["--no-open"] },
  migrate: { argv: () => [] },
  version: { argv: () => [] },
  completion: { argv: () => ["bash"] },
};

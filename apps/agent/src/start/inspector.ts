/** `--inspect`, `--inspect-brk` and `--inspect-wait` open it; `--inspect-port` only says where. */
const OPENS = /(?:^|\s)--inspect(?:-brk|-wait)?(?=[=\s]|$)/;

/**
 * Why this process must not go on: it was started with Node's inspector open, which runs whatever any local user tells
 * it with the agent's rights. SIGUSR1, which opens it later, is taken by the bundle's first line.
 *
 * @param options those of Node on the command line (`process.execArgv`)
 * @param environment those of NODE_OPTIONS
 * @returns what was asked for and what to do; undefined: nothing was
 */
export function inspectorProblem(options: readonly string[], environment = ""): string | undefined {
  const asked = options.find((option) => OPENS.test(option));
  const named = asked ?? (OPENS.test(environment) ? `NODE_OPTIONS=${environment}` : undefined);
  if (named === undefined) return undefined;
  return `${named}: any local user could run code in this process by Node's inspector; leave it out (enableProfiling profiles)`;
}

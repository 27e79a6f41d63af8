/** @throws Error with the log when it has no such line */
export function requireLogged(log: string, wanted: (line: string) => boolean): void {
  if (!log.split("\n").some(wanted)) throw new Error(`no such line in the agent's log:\n${log}`);
}

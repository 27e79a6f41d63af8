/** Structured fields of a line: names in camelCase, values without secrets. */
export type Fields = Readonly<Record<string, unknown>>;

/**
 * The agent's log. What matters on every node is always said (start, mode, warnings, errors, changes of ownership); the
 * rest has a verbosity as in klog: 2 for syncs, 4 for debugging.
 */
export interface Log {
  info(message: string, fields?: Fields): void;
  warn(message: string, fields?: Fields): void;
  error(message: string, fields?: Fields): void;
  /** Says it only at this verbosity (-v) and above. */
  verbose(verbosity: number, message: string, fields?: Fields): void;
}

/** An error as a field: its message with those of its causes, in one line of text. */
export function describeError(error: unknown): string {
  const messages: string[] = [];
  for (let current = error; current !== undefined && messages.length < 5; ) {
    const message = current instanceof Error ? current.message || current.name : String(current);
    if (!messages.some((said) => said.includes(message))) messages.push(message);
    current = current instanceof Error ? current.cause : undefined;
  }
  return messages.join(": ");
}

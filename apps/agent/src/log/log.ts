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

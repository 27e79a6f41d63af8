import type { CommandError } from "../runner/command-error.ts";

/**
 * not-installed, too-old: the tools. no-permission: CAP_NET_ADMIN or the lock file. no-extension: a match or target
 * that the kernel or the tools do not have. no-table: the kernel has not the table. locked: another program holds the
 * xtables lock; try again. too-large: the kernel does not take a transaction of this size from this process; the next
 * ones are smaller. rejected: the payload asked for something impossible. failed: anything else, killed and
 * timed out too.
 */
export type IptablesErrorKind =
  | "not-installed"
  | "too-old"
  | "no-permission"
  | "no-extension"
  | "no-table"
  | "locked"
  | "too-large"
  | "rejected"
  | "failed";

/** What is known of a failure in addition to its kind. */
export interface IptablesErrorDetails {
  /** The process that failed. */
  readonly cause?: CommandError;
  /** The payload's line, from 1. */
  readonly line?: number | undefined;
  /** The text of that line. */
  readonly text?: string | undefined;
}

/** Something that iptables would not do, in the operator's words. */
export class IptablesError extends Error {
  override readonly name = "IptablesError";
  /** What kind of failure it is: whether another attempt may help. */
  readonly kind: IptablesErrorKind;
  /** The payload's line that failed, from 1. For what the kernel finds when it commits, this may be the COMMIT. */
  readonly line: number | undefined;
  /** The text of that line, or of the rule that is to blame where the tool names its chain only. */
  readonly text: string | undefined;

  constructor(kind: IptablesErrorKind, message: string, details: IptablesErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.kind = kind;
    this.line = details.line;
    this.text = details.text;
  }
}

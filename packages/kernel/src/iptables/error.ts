/** What iptables-restore refuses, and why. */

import type { CommandError } from "../runner.ts";

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

interface Explanation {
  readonly kind: IptablesErrorKind;
  readonly message: string;
}

/** What iptables 1.8 prints, both variants, and what it means. The first that fits counts. */
const KNOWN: readonly (readonly [RegExp, (match: RegExpExecArray) => Explanation])[] = [
  [
    /(?:lock file|Can't lock) (\S+): Permission denied/,
    ([, file]) => ({
      kind: "no-permission",
      message: `cannot open the lock file ${file}; run as root, or set XTABLES_LOCKFILE to a writable file`,
    }),
  ],
  [
    /holding the xtables lock|Resource temporarily unavailable/,
    () => ({ kind: "locked", message: "another process holds the xtables lock" }),
  ],
  [
    /Message too long/,
    () => ({ kind: "too-large", message: "a transaction does not fit into one netlink message (EMSGSIZE)" }),
  ],
  [
    /Extension (\S+) revision \d+ not supported, missing kernel module/,
    ([, name = ""]) => ({
      kind: "no-extension",
      message: `the kernel lacks the iptables extension "${name}"; try: modprobe xt_${name}`,
    }),
  ],
  [
    /Couldn't load match `([^']+)'/,
    ([, name = ""]) => ({ kind: "no-extension", message: `the iptables tools lack the match "${name}"` }),
  ],
  [
    /table `([^']+)': Table does not exist/,
    ([, table = ""]) => ({
      kind: "no-table",
      message: `the kernel has no iptables table "${table}"; try: modprobe iptable_${table} (or ip6table_${table})`,
    }),
  ],
  [
    /you must be root|Permission denied|Operation not permitted/,
    () => ({
      kind: "no-permission",
      message:
        "no permission to use iptables: run as root or with CAP_NET_ADMIN (a container: privileged, or that capability)",
    }),
  ],
  [
    /unable to initialize table '([^']+)'/,
    ([, table = ""]) => ({
      kind: "no-table",
      message: `the iptables table "${table}" cannot be opened: CAP_NET_ADMIN or the kernel module iptable_${table} is missing`,
    }),
  ],
  [
    /TABLE_ADD failed \(([^)]+)\): table (\S+)/,
    ([, errno = "", table = ""]) => ({
      kind: "no-table",
      message: `the kernel's nf_tables has no table "${table}" (${errno}); try: modprobe nft_chain_nat, or the legacy variant`,
    }),
  ],
  [
    /generation id: (Invalid argument|Protocol not supported|Operation not supported)/,
    () => ({
      kind: "no-table",
      message: "the kernel has no nf_tables; try: modprobe nf_tables, or the legacy variant",
    }),
  ],
];

/**
 * Turns what a tool said into an error that names what is missing, for the operator, or which line failed, for the
 * developer.
 *
 * @param payload what was written to iptables-restore, for the failing line's text
 */
export function explain(failure: CommandError, payload?: PayloadTail): IptablesError {
  if (failure.reason === "not-found") return notInstalled(failure);
  for (const [pattern, meaning] of KNOWN) {
    const match = pattern.exec(failure.stderr);
    if (match === null) continue;
    const { kind, message } = meaning(match);
    return new IptablesError(kind, message, { cause: failure, ...blame(failure.stderr, payload) });
  }
  return rejected(failure, payload);
}

/** How both variants, over their versions, say that a chain is not there. */
const NO_CHAIN = /No chain\/target\/match by that name|is incompatible, use 'nft' tool|Chain '[^']*' does not exist/;

export function isNoChain({ exitCode, stderr }: CommandError): boolean {
  return exitCode === 1 && NO_CHAIN.test(stderr);
}

export function notInstalled(cause?: CommandError): IptablesError {
  const message =
    "iptables is not installed; install it with: apt-get install iptables (Debian, Ubuntu), " +
    "dnf install iptables-nft (Fedora, RHEL) or apk add iptables (Alpine)";
  return new IptablesError("not-installed", message, cause && { cause });
}

/** Characters. */
export const KEPT = 4 * 1024 * 1024;

/** Remembers the last few megabytes of a payload that goes by, so that an error can show the line it is about. */
export class PayloadTail {
  #pieces: string[] = [];
  #size = 0;
  /** Number of the line that the first kept piece begins with or in. */
  #firstLine = 1;

  /** The same payload, looked at as it passes. */
  async *watch(payload: Iterable<string> | AsyncIterable<string>): AsyncGenerator<string, void, void> {
    for await (const piece of payload) {
      this.#keep(piece);
      yield piece;
    }
  }

  /** The text of that line (from 1) if it is still known. */
  line(number: number): string | undefined {
    return number < this.#firstLine ? undefined : this.#lines()[number - this.#firstLine];
  }

  /** The commands of the transaction whose COMMIT is that line, if all of them are still known. */
  transaction(commit: number): readonly string[] | undefined {
    const before = this.#lines().slice(0, Math.max(commit - this.#firstLine, 0));
    const start = before.findLastIndex((line) => line.startsWith("*"));
    return start < 0 ? undefined : before.slice(start + 1);
  }

  /** The first known rule that jumps or goes to the chain. */
  jumpTo(chain: string): { line: number; text: string } | undefined {
    const lines = this.#lines();
    const index = lines.findIndex((line) => line.endsWith(` -j ${chain}`) || line.endsWith(` -g ${chain}`));
    const text = lines[index];
    return text === undefined ? undefined : { line: this.#firstLine + index, text };
  }

  #lines(): readonly string[] {
    return this.#pieces.join("").split("\n");
  }

  #keep(piece: string): void {
    this.#pieces.push(piece);
    this.#size += piece.length;
    while (this.#size > KEPT && this.#pieces.length > 1) {
      const dropped = this.#pieces.shift() ?? "";
      this.#size -= dropped.length;
      this.#firstLine += dropped.split("\n").length - 1;
    }
  }
}

function rejected(cause: CommandError, payload?: PayloadTail): IptablesError {
  if (cause.reason !== "exit") return new IptablesError("failed", cause.message, { cause });
  const { line, text } = blame(cause.stderr, payload);
  const where = line === undefined ? "" : ` line ${line}${text === undefined ? "" : ` "${text}"`}`;
  const message = `${cause.argv.join(" ")}: exit code ${cause.exitCode}:${where === "" ? "" : `${where}:`} ${reason(cause.stderr)}`;
  return new IptablesError(line === undefined ? "failed" : "rejected", message, { cause, line, text });
}

function blame(stderr: string, payload?: PayloadTail): { line: number | undefined; text: string | undefined } {
  const number = /\bline:? (\d+)/.exec(stderr)?.[1];
  const line = number === undefined ? undefined : Number(number);
  // The nft variant looks for the target when it commits and gives the COMMIT's number.
  const missing = /Chain '([^']+)' does not exist/.exec(stderr)?.[1];
  const guilty = missing === undefined ? undefined : payload?.jumpTo(missing);
  if (guilty !== undefined) return guilty;
  return { line, text: line === undefined ? undefined : payload?.line(line) };
}

/** The tool's own words without its name, the hint at its help and the line number, which the error already has. */
function reason(stderr: string): string {
  const reported = stderr
    .split("\n")
    .map((line) =>
      line
        .trim()
        .replace(/^(?:ip6?tables\S*)(?: v\S+ \([^)]*\))?: */, "")
        .replace(/^line \d+(?: failed)?(?:: )?/, ""),
    )
    .filter((line) => line !== "" && !/^(?:Error occurred at|Try `|# Warning)/.test(line));
  return reported.length === 0 ? "the kernel refused it" : reported.join(" ");
}

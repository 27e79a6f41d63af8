/** What may be in a rule: checks of names and values, and the quotes and words that iptables has for them. */

/** XT_EXTENSION_MAXNAMELEN (linux/netfilter/x_tables.h) less its closing zero. */
export const MAX_CHAIN_NAME_LENGTH = 28;

/** Rules of a chain stand together, and jump to the same chains as those of the next one. */
let lastGood: string | undefined;
let goodBefore: string | undefined;

/** All that a chain may be called, the names of targets among it. */
const GOOD_CHAIN = /^(?![-!])[!#-&(-[\]-~]{1,28}$/;

/**
 * @returns the name
 * @throws RuleTextError for what iptables refuses as a chain name: empty, over 28 characters, the name of a target,
 *   a leading dash or exclamation mark, white space; and for quotes and backslashes, which its text forms can't carry
 */
export function checkChainName(name: string): string {
  if (name === lastGood) return name;
  if (name === goodBefore) return remember(name);
  if (isTargetName(name)) throw new RuleTextError("chain", name, "must not be the name of a target");
  if (GOOD_CHAIN.test(name)) return remember(name);
  if (name.length > MAX_CHAIN_NAME_LENGTH) {
    throw new RuleTextError("chain", name, `must not be longer than ${MAX_CHAIN_NAME_LENGTH} characters`);
  }
  throw new RuleTextError("chain", name, "must be printable ASCII without spaces, quotes, a leading - or !");
}

/** Lengths that the kernel takes, less the closing zero: XT_RECENT_NAME_LEN, NFACCT_NAME_MAX, IPSET_MAXNAMELEN. */
const MAX_NAME_LENGTH = { recent: 199, nfacct: 31, set: 31 } as const;

const NAME = /^[!-~]+$/;
const BREAKS_WORD = /["'\\]/;

/** Names of recent lists, nfacct objects and ipsets: iptables-save prints them bare, so they must be one word. */
export function checkName(field: keyof typeof MAX_NAME_LENGTH, name: string): string {
  const max = MAX_NAME_LENGTH[field];
  if (name.length > max) throw new RuleTextError(field, name, `must not be longer than ${max} characters`);
  if (!NAME.test(name) || BREAKS_WORD.test(name) || name.startsWith("-") || name.startsWith("!")) {
    throw new RuleTextError(field, name, "must be printable ASCII without spaces, quotes, a leading - or !");
  }
  return name;
}

const INTERFACE = /^[!-~]{1,15}$/;

export function checkInterface(name: string): string {
  if (!INTERFACE.test(name) || BREAKS_WORD.test(name) || name.startsWith("-") || name.startsWith("!")) {
    throw new RuleTextError("interface", name, "must be 1 to 15 printable characters, a trailing + for a prefix");
  }
  return name;
}

const CIDR = /^[0-9a-fA-F.:]+\/\d{1,3}$/;

export function checkCIDR(cidr: string): string {
  if (!CIDR.test(cidr)) throw new RuleTextError("address", cidr, "must be a CIDR with its length, as 10.96.0.1/32");
  return cidr;
}

const PROTOCOL = /^[a-z0-9][a-z0-9._-]*$/;

export function checkProtocol(name: string): string {
  if (!PROTOCOL.test(name)) throw new RuleTextError("protocol", name, "must be a lower-case name or a number");
  return name;
}

const VALUE = /^[A-Za-z0-9_.,:[\]/-]+$/;

/** Values of a closed vocabulary: states, address types, reject types, port ranges, translated addresses. */
export function checkValue(field: string, value: string): string {
  if (!VALUE.test(value) || value.startsWith("-")) throw new RuleTextError(field, value, "must be one plain word");
  return value;
}

export function checkInteger(field: string, value: number, max: number): number {
  if (!Number.isInteger(value) || value < 0 || value > max) {
    throw new RuleTextError(field, String(value), `must be a whole number from 0 to ${max}`);
  }
  return value;
}

/** Every target of the kernel: names that no chain can have. */
const TARGET_NAMES: ReadonlySet<string> = new Set(
  `ACCEPT AUDIT CHECKSUM CLASSIFY CLUSTERIP CONNMARK CONNSECMARK CT DNAT DNPT DROP DSCP ECN HL HMARK IDLETIMER LED LOG MARK
  MASQUERADE NETMAP NFLOG NFQUEUE NOTRACK QUEUE RATEEST REDIRECT REJECT RETURN SECMARK SET SNAT SNPT SYNPROXY TCPMSS
  TCPOPTSTRIP TEE TOS TPROXY TRACE TTL ULOG`.split(/\s+/),
);

export function isTargetName(name: string): boolean {
  return TARGET_NAMES.has(name);
}

/** Options whose value iptables prints by xtables_save_string, quotes and all. */
const STRING_OPTIONS: ReadonlySet<string> = new Set([
  "--comment",
  "--log-prefix",
  "--nflog-prefix",
  "--ulog-prefix",
  "--string",
  "--hex-string",
  "--bytecode",
  "--timeout",
  "--helper",
]);

/** The words of a match or target without a type of its own, each with a leading space. */
export function renderWords(words: readonly string[]): string {
  let text = "";
  let previous = "";
  for (const word of words) {
    text += ` ${STRING_OPTIONS.has(previous) ? quoteString(previous, word) : quoteWord("argument", word)}`;
    previous = word;
  }
  return text;
}

/** 32 bits as iptables-save prints them: `0x4000`. */
export function hex(field: string, value: number): string {
  return `0x${checkInteger(field, value, 0xffffffff).toString(16)}`;
}

/** XT_MAX_COMMENT_LEN (linux/netfilter/xt_comment.h) counts the closing zero too. */
const MAX_COMMENT_BYTES = 255;

/** @throws RuleTextError for what iptables can't store as a comment: control characters, more than 255 bytes */
export function quoteComment(text: string): string {
  checkText("comment", text, MAX_COMMENT_BYTES);
  return quoteChecked(text);
}

/** A typed rule, command or name that can't be written as text without changing its meaning. */
export class RuleTextError extends Error {
  override readonly name = "RuleTextError";
  /** What was wrong: `comment`, `chain`, `interface`, … */
  readonly field: string;
  /** The value that cannot be written. */
  readonly value: string;

  constructor(field: string, value: string, expected: string) {
    super(`${field} ${JSON.stringify(value)}: ${expected}`);
    this.field = field;
    this.value = value;
  }
}

/** Text that iptables-save can't have written or that iptables-restore would refuse. */
export class RuleParseError extends Error {
  override readonly name = "RuleParseError";
  /** Counts from 1. */
  readonly line: number;
  /** The line as it stands in the text. */
  readonly text: string;

  constructor(line: number, text: string, problem: string) {
    super(`line ${line}: ${problem}: ${text}`);
    this.line = line;
    this.text = text;
  }
}

function remember(name: string): string {
  goodBefore = lastGood;
  lastGood = name;
  return name;
}

/** iptables-restore takes no longer argument (XT_PARAM buffer of xtables). */
const MAX_ARGUMENT_BYTES = 1023;

const PLAIN = /^[A-Za-z0-9_-]+$/;
const PRINTABLE_ASCII = /^[\x20-\x7e]*$/;
const NEEDS_ESCAPE = /["'\\]/;
const CONTROL = /\p{Cc}/u;

const encoder = new TextEncoder();

/**
 * The text as one argument, quoted as xtables_save_string of iptables does: letters, digits, `_` and `-` bare, all else
 * in double quotes with `"`, `'` and `\` escaped. Other than iptables, quotes what starts with a dash: iptables-restore
 * would take a bare `-test` for the option -t.
 *
 * @throws RuleTextError for control characters, lone surrogates and more than 1,023 bytes
 */
function quoteString(field: string, text: string): string {
  checkText(field, text, MAX_ARGUMENT_BYTES);
  return quoteChecked(text);
}

/**
 * The text as one argument, quoted only where iptables-restore would else cut it: extensions print most values bare.
 */
function quoteWord(field: string, text: string): string {
  checkText(field, text, MAX_ARGUMENT_BYTES);
  return text === "" || /[\s"'\\]/.test(text) ? quoteChecked(text) : text;
}

function quoteChecked(text: string): string {
  if (PLAIN.test(text) && !text.startsWith("-")) return text;
  return NEEDS_ESCAPE.test(text) ? `"${text.replaceAll(/["'\\]/g, "\\$&")}"` : `"${text}"`;
}

function checkText(field: string, text: string, maxBytes: number): void {
  if (text.length <= maxBytes && PRINTABLE_ASCII.test(text)) return;
  if (CONTROL.test(text)) throw new RuleTextError(field, text, "must not have control characters");
  if (!text.isWellFormed()) throw new RuleTextError(field, text, "must be well-formed Unicode");
  if (encoder.encode(text).length > maxBytes) {
    throw new RuleTextError(field, text, `must not be longer than ${maxBytes} bytes in UTF-8`);
  }
}

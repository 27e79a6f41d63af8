import { RuleTextError } from "./errors.ts";

/** XT_MAX_COMMENT_LEN (linux/netfilter/xt_comment.h) counts the closing zero too. */
const MAX_COMMENT_BYTES = 255;
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
export function quoteString(field: string, text: string): string {
  checkText(field, text, MAX_ARGUMENT_BYTES);
  return quoteChecked(text);
}

/** @throws RuleTextError for what iptables can't store as a comment: control characters, more than 255 bytes */
export function quoteComment(text: string): string {
  checkText("comment", text, MAX_COMMENT_BYTES);
  return quoteChecked(text);
}

/**
 * The text as one argument, quoted only where iptables-restore would else cut it: extensions print most values bare.
 *
 * @throws RuleTextError as `quoteString`
 */
export function quoteWord(field: string, text: string): string {
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

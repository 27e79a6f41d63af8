import { checkInteger } from "./check.ts";
import { quoteString, quoteWord } from "./quote.ts";

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

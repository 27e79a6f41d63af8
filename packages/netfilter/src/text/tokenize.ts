import { Problem } from "../rule/problem.ts";

/** The words of one line. A quoted word is never an option, whatever it says. */
export interface Words {
  readonly texts: string[];
  readonly quoted: boolean[];
}

const SPACE = 0x20;
const TAB = 0x09;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Cuts a line as iptables-restore does (add_param_to_argv of xtables): only double quotes quote, a backslash escapes
 * within them only, and the closing quote ends the word.
 *
 * @param from where the words begin
 * @throws Problem for a quote that isn't closed
 */
export function tokenize(line: string, from = 0): Words {
  const words: Words = { texts: [], quoted: [] };
  let at = from;
  while (at < line.length) {
    const code = line.charCodeAt(at);
    at = code === SPACE || code === TAB ? at + 1 : takeWord(line, at, words);
  }
  return words;
}

function takeWord(line: string, from: number, words: Words): number {
  for (let at = from; at < line.length; at++) {
    const code = line.charCodeAt(at);
    if (code === QUOTE) return takeQuoted(line, from, at, words);
    if (code === SPACE || code === TAB) {
      addWord(words, line.slice(from, at), false);
      return at;
    }
  }
  addWord(words, line.slice(from), false);
  return line.length;
}

/** @returns the place after the closing quote */
function takeQuoted(line: string, from: number, open: number, words: Words): number {
  let text = line.slice(from, open);
  let start = open + 1;
  for (let at = start; at < line.length; at++) {
    const code = line.charCodeAt(at);
    if (code === QUOTE) {
      addWord(words, text + line.slice(start, at), true);
      return at + 1;
    }
    if (code === BACKSLASH) {
      text += line.slice(start, at);
      at += 1;
      start = at;
    }
  }
  throw new Problem("a quote is not closed");
}

function addWord(words: Words, text: string, quoted: boolean): void {
  words.texts.push(text);
  words.quoted.push(quoted);
}

import { nextLine, OPEN, RuleEnds } from "../text/lines.ts";

/**
 * Rules of one chain that stand together in a text: lines `-A CHAIN …`, with or without counters, and those that they
 * go on in.
 */
export interface RuleBlock {
  /** The lines are in it somewhere. */
  readonly text: string;
  /** The first character of the first line. */
  readonly from: number;
  /** After the end of the last line, or at the end of the text. */
  readonly to: number;
  /** Number of the first line, from 1. */
  readonly line: number;
  /** How many lines. */
  readonly lines: number;
}

export interface ScanOptions {
  /**
   * A line that begins nothing belongs to the rule before it: extensions print names without quotes, which may have a
   * line end in them. For what the tools print themselves.
   */
  readonly lenient?: boolean;
}

/** What takes a text apart. */
export interface BlockSink {
  /** Rules of one chain that follow each other in the text. */
  rules(chain: string, block: RuleBlock): void;
  /** A line that appends no rule, without its end. */
  line(text: string, line: number): void;
}

const SPACE = 0x20;
const LINE_FEED = 0x0a;
const RETURN = 0x0d;
const BRACKET = 0x5b;

/**
 * Cuts iptables' text, whole or in pieces, into blocks of rules and other lines. A rule costs no more than finding its
 * end:
 * large rule sets have hundreds of thousands, most of which nothing reads.
 */
export class BlockScanner {
  readonly #sink: BlockSink;
  readonly #lenient: boolean;
  #rest = "";
  /** Lines read so far. */
  #line = 0;

  constructor(sink: BlockSink, { lenient = false }: ScanOptions = {}) {
    this.#sink = sink;
    this.#lenient = lenient;
  }

  /** The number of lines that were read. */
  get line(): number {
    return this.#line;
  }

  /** Takes more of the text, which may end anywhere. */
  push(chunk: string): void {
    const complete = chunk.lastIndexOf("\n") + 1;
    if (complete === 0) {
      this.#rest += chunk;
      return;
    }
    const text = this.#rest + chunk;
    this.#rest = text.slice(this.#scan(text, this.#rest.length + complete, false));
  }

  /** A last line without an end counts too. */
  end(): void {
    const last = this.#rest;
    this.#rest = "";
    if (last !== "") this.#scan(last, last.length, true);
  }

  /** @returns the place up to which it is clear what the text says: all of it where nothing comes after it */
  #scan(text: string, to: number, last: boolean): number {
    const limit: Limit = { ends: new RuleEnds(text), to, last, reached: false };
    let at = 0;
    while (at < to && !limit.reached) {
      const name = appendedTo(text, at);
      at = name === undefined ? this.#scanLine(text, at) : this.#scanBlock(text, at, name, limit);
    }
    return at;
  }

  #scanLine(text: string, from: number): number {
    const next = nextLine(text, from);
    this.#line += 1;
    this.#sink.line(text.slice(from, endOfLine(text, next)), this.#line);
    return next;
  }

  /** @returns the place after the block */
  #scanBlock(text: string, from: number, name: string, limit: Limit): number {
    const line = this.#line + 1;
    const start = `-A ${name}`;
    let at = from;
    while (at < limit.to && appendsTo(text, afterCounters(text, at), start)) {
      const next = this.#afterRule(text, at, limit);
      limit.reached = next === OPEN;
      if (limit.reached) break;
      at = next;
    }
    if (at > from) this.#sink.rules(name, { text, from, to: at, line, lines: this.#line + 1 - line });
    return at;
  }

  /** OPEN: what comes next decides. */
  #afterRule(text: string, from: number, { ends, to, last }: Limit): number {
    let next = ends.after(from);
    let { lines } = ends;
    if (next === OPEN || next > to) {
      if (!last) return OPEN;
      next = nextLine(text, from);
      lines = 1;
    }
    if (this.#lenient) {
      for (; next < to && !begins(text, next); next = nextLine(text, next)) lines += 1;
      if (next >= to && !last) return OPEN;
    }
    this.#line += lines;
    return next;
  }
}

/** How far a text is scanned. */
interface Limit {
  readonly ends: RuleEnds;
  readonly to: number;
  /** Nothing comes after it. */
  readonly last: boolean;
  /** What comes next decides where the rule ends that the scan has come to. */
  reached: boolean;
}

/** The texts of a block's rules without `-A CHAIN `. */
export function ruleTexts(chain: string, block: RuleBlock): string[] {
  const texts: string[] = [];
  // Not the whole text: where no comment is quoted, each block would look for one to the text's end.
  const text = block.text.slice(block.from, block.to);
  const to = text.length;
  const ends = new RuleEnds(text);
  const start = `-A ${chain}`;
  for (let at = 0; at < to; ) {
    let next = ends.after(at);
    if (next === OPEN) next = nextLine(text, at);
    while (next < to && !appendsTo(text, afterCounters(text, next), start)) next = nextLine(text, next);
    // Past the blank, which a rule that says nothing has not got.
    texts.push(text.slice(afterCounters(text, at) + chain.length + 4, endOfLine(text, next)));
    at = next;
  }
  return texts;
}

/** The number of the line that each of a block's rules begins in. */
export function ruleLines({ line }: RuleBlock, texts: readonly string[]): number[] {
  let next = line;
  return texts.map((text) => {
    const own = next;
    next += 1;
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) next += 1;
    return own;
  });
}

/** Whether a table, a chain, a rule, a remark, COMMIT or nothing may begin there. */
function begins(text: string, at: number): boolean {
  switch (text[at]) {
    case "-":
      return text.startsWith("-A ", at);
    case "[":
    case ":":
    case "*":
    case "#":
    case "\n":
    case "\r":
      return true;
    default:
      return text.startsWith("COMMIT", at);
  }
}

/** The chain that the line appends to, if it does. */
function appendedTo(text: string, from: number): string | undefined {
  const start = afterCounters(text, from);
  if (!text.startsWith("-A ", start)) return undefined;
  let end = start + 3;
  while (!endsWord(text.charCodeAt(end))) end += 1;
  return text.slice(start + 3, end);
}

function appendsTo(text: string, at: number, start: string): boolean {
  return text.startsWith(start, at) && endsWord(text.charCodeAt(at + start.length));
}

function endsWord(code: number): boolean {
  return code === SPACE || code === LINE_FEED || code === RETURN || Number.isNaN(code);
}

/** The place after `[1:2] `, which -c puts before a rule. */
function afterCounters(text: string, at: number): number {
  if (text.charCodeAt(at) !== BRACKET) return at;
  COUNTERS.lastIndex = at;
  return COUNTERS.test(text) ? COUNTERS.lastIndex : at;
}

const COUNTERS = /\[\d+:\d+\] */y;

/** Where the line before `next` ends: before its line feed, or the carriage return before that. */
function endOfLine(text: string, next: number): number {
  const end = text.charCodeAt(next - 1) === LINE_FEED ? next - 1 : next;
  return text.charCodeAt(end - 1) === RETURN ? end - 1 : end;
}

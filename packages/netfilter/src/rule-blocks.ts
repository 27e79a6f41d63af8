/** Rules of one chain that stand together in a text: whole lines `-A CHAIN …`, with or without counters. */
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

/** What takes a text apart. */
export interface BlockSink {
  rules(chain: string, block: RuleBlock): void;
  /** A line that appends no rule, without its end. */
  line(text: string, line: number): void;
}

const SPACE = 0x20;
const LINE_FEED = 0x0a;
const RETURN = 0x0d;
const BRACKET = 0x5b;

/**
 * Cuts iptables' text, whole or in pieces, into blocks of rules and other lines. A rule costs no more than finding its end:
 * large rule sets have hundreds of thousands, most of which nobody reads.
 */
export class BlockScanner {
  readonly #sink: BlockSink;
  #rest = "";
  /** Lines read so far. */
  #line = 0;

  constructor(sink: BlockSink) {
    this.#sink = sink;
  }

  get line(): number {
    return this.#line;
  }

  push(chunk: string): void {
    const complete = chunk.lastIndexOf("\n") + 1;
    if (complete === 0) {
      this.#rest += chunk;
      return;
    }
    this.#scan(this.#rest + chunk, this.#rest.length + complete);
    this.#rest = chunk.slice(complete);
  }

  /** A last line without an end counts too. */
  end(): void {
    const last = this.#rest;
    this.#rest = "";
    if (last !== "") this.#scan(last, last.length);
  }

  #scan(text: string, to: number): void {
    for (let at = 0; at < to; ) {
      const name = appendedTo(text, at);
      at = name === undefined ? this.#scanLine(text, at) : this.#scanBlock(text, at, to, name);
    }
  }

  #scanLine(text: string, from: number): number {
    const next = nextLine(text, from);
    this.#line += 1;
    this.#sink.line(text.slice(from, endOfLine(text, next)), this.#line);
    return next;
  }

  /** @returns the place after the block */
  #scanBlock(text: string, from: number, limit: number, name: string): number {
    const line = this.#line + 1;
    const start = `-A ${name}`;
    let to = from;
    while (to < limit && appendsTo(text, afterCounters(text, to), start)) {
      to = nextLine(text, to);
      this.#line += 1;
    }
    this.#sink.rules(name, { text, from, to, line, lines: this.#line + 1 - line });
    return to;
  }
}

/** The texts of a block's rules without `-A CHAIN `. */
export function ruleTexts(chain: string, { text, from, to }: RuleBlock): string[] {
  const texts: string[] = [];
  for (let at = from; at < to; ) {
    const next = nextLine(text, at);
    // Past the blank, which a rule that says nothing has not got.
    texts.push(text.slice(afterCounters(text, at) + chain.length + 4, endOfLine(text, next)));
    at = next;
  }
  return texts;
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

function nextLine(text: string, from: number): number {
  const end = text.indexOf("\n", from);
  return end < 0 ? text.length : end + 1;
}

/** Where the line before `next` ends: before its line feed, alone or after a carriage return. */
function endOfLine(text: string, next: number): number {
  const end = text.charCodeAt(next - 1) === LINE_FEED ? next - 1 : next;
  return text.charCodeAt(end - 1) === RETURN ? end - 1 : end;
}

/** How iptables-save begins a comment that it quotes. Nothing else that it quotes can have a line end in it. */
const OPENING = '--comment "';

/**
 * Characters after which a quote that was not closed has not opened a comment: the kernel stores 255 bytes, of which
 * each may be escaped.
 * It is part of a name then that the tools print without quotes, such as an interface's.
 */
const LONGEST = 512;

/** Instead of a place: the text ends within a comment. */
export const OPEN = -1;

/**
 * Finds the ends of rules in a listing: a rule ends with its line, unless that is within a comment, which may have line
 * ends of its own. Asked for place after place, it goes through a text once.
 */
export class RuleEnds {
  readonly #text: string;
  /**
   * Where the next quoted comment begins, from the place on that was last asked for; behind the text: there is none.
   */
  #comment = -1;
  /** How many lines the rule takes whose end was found last. */
  lines = 1;

  constructor(text: string) {
    this.#text = text;
  }

  /**
   * @param from a place in the rule; not before that of the last call
   * @returns the place after the rule's last line end; without one that of the text's end; OPEN: the text ends within a
   * comment
   */
  after(from: number): number {
    const text = this.#text;
    let end = nextLine(text, from);
    this.lines = 1;
    for (let at = from; ; ) {
      if (this.#comment < at) this.#comment = commentFrom(text, at);
      if (this.#comment >= end) return end;
      const start = this.#comment + OPENING.length;
      const close = closingQuote(text, start);
      if (close === OPEN && text.length - start <= LONGEST) return OPEN;
      for (; close >= end; end = nextLine(text, end)) this.lines += 1;
      at = start;
    }
  }
}

/** What a line of `iptables-save` or `iptables -S` begins with. */
const BEGINNING = /^(?:-[ANP] |\[\d+:\d+\] |[:*#]|COMMIT$|$)/;

/**
 * Whether a line of a listing goes on with the rule in the lines before it: that ends within a comment, or this line
 * begins nothing, as after a line end in a name, which the tools print without quotes.
 */
export function goesOn(rule: string, line: string): boolean {
  return isOpen(rule) || !BEGINNING.test(line);
}

/** Whether a rule's text ends within a comment. */
export function isOpen(rule: string): boolean {
  return new RuleEnds(rule).after(0) === OPEN;
}

function commentFrom(text: string, from: number): number {
  const found = text.indexOf(OPENING, from);
  return found < 0 ? Number.POSITIVE_INFINITY : found;
}

/** OPEN: there is none, or only behind more characters than a comment has. */
function closingQuote(text: string, from: number): number {
  for (let at = text.indexOf('"', from); at >= 0 && at - from <= LONGEST; at = text.indexOf('"', at + 1)) {
    if (!isEscaped(text, at, from)) return at;
  }
  return OPEN;
}

function isEscaped(text: string, at: number, from: number): boolean {
  let backslashes = 0;
  while (at - backslashes > from && text.charCodeAt(at - backslashes - 1) === 0x5c) backslashes += 1;
  return backslashes % 2 === 1;
}

export function nextLine(text: string, from: number): number {
  const end = text.indexOf("\n", from);
  return end < 0 ? text.length : end + 1;
}

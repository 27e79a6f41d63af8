/** The tokens of nft's text, and statements that are passed over. */

export interface Token {
  /** A word, one of `{ } , ;` or the end of a line; of a quoted text what is within. */
  readonly text: string;
  readonly quoted: boolean;
}

/** Before the handle of an object (`nft -a`). */
export const HANDLE = "# handle";

/** A quoted text; a handle, which nft adds as a comment; other comments; what stands by itself; words. */
const PIECE = /"([^"]*)"|# handle (\d+)|#[^\n]*|([{},;\n])|([^\s{},;"#]+)/g;

export function tokensOf(listing: string): readonly Token[] {
  const tokens: Token[] = [];
  for (const [, quoted, handle, mark, word] of listing.matchAll(PIECE)) {
    if (quoted !== undefined) tokens.push({ text: quoted, quoted: true });
    else if (handle !== undefined) tokens.push({ text: `${HANDLE} ${handle}`, quoted: false });
    else if (mark !== undefined || word !== undefined) tokens.push({ text: mark ?? word ?? "", quoted: false });
  }
  return tokens;
}

/** Pieces as they could stand in a listing: behind a comma within braces there is a space. */
export function tokensText(tokens: readonly Token[]): string {
  let depth = 0;
  const words = tokens.map(({ text, quoted }) => {
    if (quoted) return `"${text}" `;
    depth += DEEPER[text] ?? 0;
    return text === "," && depth === 0 ? text : `${text} `;
  });
  return words.join("").replaceAll(" ,", ",").trimEnd();
}

/** Reads pieces one after the other. */
export class TokenReader {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  get at(): number {
    return this.#at;
  }

  get atEnd(): boolean {
    return this.#at >= this.#tokens.length;
  }

  /** Whether the next piece is a quoted text. */
  get atQuoted(): boolean {
    return this.#tokens[this.#at]?.quoted === true;
  }

  /** The next piece's text, which stays; "" at the end. */
  peek(ahead = 0): string {
    return this.#tokens[this.#at + ahead]?.text ?? "";
  }

  next(): Token {
    const token = this.#tokens[this.#at] ?? { text: "", quoted: false };
    this.#at += 1;
    return token;
  }

  /** Takes the next pieces if they are these words. */
  take(...words: readonly string[]): boolean {
    if (!words.every((word, ahead) => this.peek(ahead) === word)) return false;
    this.#at += words.length;
    return true;
  }

  /** What was read since then. */
  since(at: number): readonly Token[] {
    return this.#tokens.slice(at, this.#at);
  }

  /** The pieces up to the brace that closes the one that was read last, which is read too. */
  block(): readonly Token[] {
    return this.#block().pieces;
  }

  /**
   * The same of what a listing must close.
   *
   * @param what it is, for the error
   * @throws SyntaxError the listing ends within it
   */
  wholeBlock(what: string): readonly Token[] {
    const { pieces, isClosed } = this.#block();
    if (!isClosed) throw new SyntaxError(`the text ends within ${what}`);
    return pieces;
  }

  #block(): { readonly pieces: readonly Token[]; readonly isClosed: boolean } {
    const from = this.#at;
    let depth = 1;
    while (depth > 0 && !this.atEnd) {
      const { text, quoted } = this.next();
      if (!quoted) depth += text === "{" ? 1 : text === "}" ? -1 : 0;
    }
    return { pieces: this.#tokens.slice(from, this.#at - 1), isClosed: depth === 0 };
  }
}

/** Cuts pieces at each of these marks that is not within braces. */
export function cut(tokens: readonly Token[], ...marks: readonly string[]): readonly (readonly Token[])[] {
  const parts: Token[][] = [[]];
  let depth = 0;
  for (const token of tokens) {
    if (!token.quoted) depth += token.text === "{" ? 1 : token.text === "}" ? -1 : 0;
    if (depth === 0 && !token.quoted && marks.includes(token.text)) parts.push([]);
    else parts.at(-1)?.push(token);
  }
  return parts.filter((part) => part.length > 0);
}

/**
 * Steps over one statement that has no type here. Common ones are known by their options; any other ends before the
 * next word that only a statement begins with.
 */
export function skipUnknown(reader: TokenReader): void {
  const known = SHAPES.find(({ words }) => reader.take(...words));
  if (known !== undefined) known.skip(reader);
  else skipToNext(reader);
}

const DEEPER: Readonly<Record<string, number>> = { "{": 1, "}": -1 };

function skipToNext(reader: TokenReader): void {
  do {
    if (reader.next().text === "{") reader.block();
  } while (!reader.atEnd && !STATEMENTS.has(reader.peek()));
}

/** Verdicts and statements that no match has within; interfaces' names, prefixes and comments are quoted. */
const STATEMENTS: ReadonlySet<string> = new Set([
  ...["accept", "drop", "return", "continue", "jump", "goto"],
  ...[
    "add",
    "update",
    "delete",
    "counter",
    "flow",
    "limit",
    "quota",
    "log",
    "queue",
    "reject",
    "notrack",
    "synproxy",
    "tproxy",
  ],
  ...["masquerade", "redirect", "snat", "dnat", "dup", "fwd"],
]);

interface Shape {
  readonly words: readonly string[];
  readonly skip: (reader: TokenReader) => void;
}

const LOG_OPTIONS = ["prefix", "level", "group", "snaplen", "queue-threshold"];

/** nft(8), "Statements"; as nft lists them. */
const SHAPES: readonly Shape[] = [
  { words: ["log"], skip: skipLog },
  { words: ["limit", "rate"], skip: skipLimit },
  { words: ["quota"], skip: skipQuota },
  { words: ["ct", "count"], skip: skipCount },
  ...["nftrace", "priority", "pkttype"].map((key) => ({ words: ["meta", key, "set"], skip: skipWord })),
];

function skipWord(reader: TokenReader): void {
  reader.next();
}

function skipLog(reader: TokenReader): void {
  while (!reader.atEnd) {
    if (LOG_OPTIONS.some((option) => reader.take(option))) reader.next();
    else if (!reader.take("flags")) return;
    else {
      const hasMore = reader.take("ip") || reader.take("tcp");
      reader.next();
      while (hasMore && reader.take(",")) reader.next();
    }
  }
}

/** `5/second burst 5 packets`, `over 10 mbytes/second burst 1 mbytes`. */
function skipLimit(reader: TokenReader): void {
  reader.take("over");
  if (!reader.next().text.includes("/")) reader.next();
  if (reader.take("burst")) skipAmount(reader);
}

/** `over 25 mbytes used 3 bytes`. */
function skipQuota(reader: TokenReader): void {
  if (!reader.take("over")) reader.take("until");
  skipAmount(reader);
  if (reader.take("used")) skipAmount(reader);
}

function skipAmount(reader: TokenReader): void {
  reader.next();
  reader.next();
}

function skipCount(reader: TokenReader): void {
  reader.take("over");
  reader.next();
}

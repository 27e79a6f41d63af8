/** A piece of a listing. */
export interface Token {
  /** A word, one of `{ } , ;` or the end of a line; of a quoted text what is within. */
  readonly text: string;
  readonly quoted: boolean;
}

/** A quoted text; a handle, which nft adds as a comment; other comments; what stands by itself; words. */
const PIECE = /"([^"]*)"|# handle (\d+)|#[^\n]*|([{},;\n])|([^\s{},;"#]+)/g;
/** Before the handle of an object (`nft -a`). */
export const HANDLE = "# handle";

/** The pieces of a listing of nft. */
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

const DEEPER: Readonly<Record<string, number>> = { "{": 1, "}": -1 };

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
    const from = this.#at;
    for (let depth = 1; depth > 0 && !this.atEnd; ) {
      const { text, quoted } = this.next();
      if (!quoted) depth += text === "{" ? 1 : text === "}" ? -1 : 0;
    }
    return this.#tokens.slice(from, this.#at - 1);
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

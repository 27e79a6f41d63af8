import { RuleParseError } from "../rule/errors.ts";
import type { IPFamily, Table } from "../rule/rule.ts";
import { atLine, parseChainLine } from "../text/line.ts";
import { ChainsInBytes } from "./chains-in-bytes.ts";
import { LazySaveParser, type SavedRules } from "./save.ts";
import { undeclared } from "./save-reader.ts";
import { SavedTables } from "./saved-tables.ts";
import { isSame } from "./word-index.ts";

const [LINE_FEED, RETURN, SPACE, COLON, DASH] = [0x0a, 0x0d, 0x20, 0x3a, 0x2d] as const;
const [CAPITAL_A, OPEN, CLOSE, ZERO, NINE] = [0x41, 0x5b, 0x5d, 0x30, 0x39] as const;

/**
 * What `LazySaveParser` gives, of a listing that is there as a whole and of which few chains will be asked for: no text
 * is made of the others.
 *
 * @throws RuleParseError as `LazySaveParser` does
 */
export function readSave(bytes: Uint8Array, { family = "IPv4" }: { readonly family?: IPFamily } = {}): SavedRules {
  try {
    return new ByteReader(bytes, family).read();
  } catch (error) {
    if (!(error instanceof RuleParseError)) throw error;
    // It looks at lines. A comment may have several, which the other one knows, and costs more.
    const parser = new LazySaveParser({ family });
    parser.push(new TextDecoder().decode(bytes));
    return parser.end();
  }
}

interface ByteTable {
  readonly table: Table;
  readonly chains: ChainsInBytes;
}

class ByteReader {
  readonly #bytes: Uint8Array;
  readonly #tables: SavedTables<ByteTable>;
  /** Lines read so far. */
  #line = 0;

  constructor(bytes: Uint8Array, family: IPFamily) {
    this.#bytes = bytes;
    this.#tables = new SavedTables((table) => ({ table, chains: new ChainsInBytes(bytes, family) }));
  }

  read(): SavedRules {
    const bytes = this.#bytes;
    for (let at = 0; at < bytes.length; ) {
      const rule = afterCounters(bytes, at);
      at = appends(bytes, rule) ? this.#rules(at, rule + 3) : this.#otherLine(at);
    }
    return atLine(this.#line, "", () => this.#tables.end());
  }

  /**
   * @param name where the chain's name begins
   * @returns the place after all lines that append to it from here on
   */
  #rules(from: number, name: number): number {
    const bytes = this.#bytes;
    const nameEnd = endOfWord(bytes, name);
    const line = this.#line + 1;
    let at = from;
    for (let rule = name - 3; appendsTo(bytes, rule, name, nameEnd); rule = afterCounters(bytes, at)) {
      at = nextLine(bytes, rule);
      this.#line += 1;
    }
    const chains = this.#tables.open?.chains;
    if (chains?.isDeclared(name, nameEnd) === true) chains.append(name, nameEnd, at, line, this.#line + 1 - line);
    else this.#refuse(from, line, name, nameEnd);
    return at;
  }

  #refuse(from: number, line: number, name: number, nameEnd: number): void {
    atLine(line, this.#lineAt(from), () => undeclared(this.#tables, this.#text(name, nameEnd)));
  }

  #otherLine(from: number): number {
    const bytes = this.#bytes;
    this.#line += 1;
    const nameEnd = endOfWord(bytes, from + 1);
    const chains = bytes[from] === COLON ? this.#tables.open?.chains : undefined;
    // As nearly all of them are: `:NAME - [`.
    if (chains === undefined || !isPlain(bytes, nameEnd) || nameEnd === from + 1) this.#readLine(this.#lineAt(from));
    chains?.declare(from + 1, nameEnd);
    return nextLine(bytes, from);
  }

  #readLine(text: string): void {
    atLine(this.#line, text, () => {
      if (!text.startsWith(":")) return this.#tables.read(text);
      this.#tables.current;
      parseChainLine(text);
    });
  }

  #lineAt(from: number): string {
    const next = nextLine(this.#bytes, from);
    return this.#text(from, next).replace(/\r?\n$/, "");
  }

  #text(from: number, to: number): string {
    return new TextDecoder().decode(this.#bytes.subarray(from, to));
  }
}

/** `-A ` */
function appends(bytes: Uint8Array, at: number): boolean {
  return bytes[at] === DASH && bytes[at + 1] === CAPITAL_A && bytes[at + 2] === SPACE;
}

/** `-A ` and the chain whose name stands at another place */
function appendsTo(bytes: Uint8Array, at: number, name: number, nameEnd: number): boolean {
  if (!appends(bytes, at)) return false;
  const length = nameEnd - name;
  return isSame(bytes, at + 3, bytes, name, length) && endOfWord(bytes, at + 3 + length) === at + 3 + length;
}

/** ` - [` */
function isPlain(bytes: Uint8Array, at: number): boolean {
  return bytes[at] === SPACE && bytes[at + 1] === DASH && bytes[at + 2] === SPACE && bytes[at + 3] === OPEN;
}

function endOfWord(bytes: Uint8Array, from: number): number {
  let at = from;
  for (; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === SPACE || byte === LINE_FEED || byte === RETURN) break;
  }
  return at;
}

function nextLine(bytes: Uint8Array, from: number): number {
  const end = bytes.indexOf(LINE_FEED, from);
  return end < 0 ? bytes.length : end + 1;
}

/** The place after `[1:2] `, which -c puts before a rule. */
function afterCounters(bytes: Uint8Array, from: number): number {
  if (bytes[from] !== OPEN) return from;
  const packets = afterDigits(bytes, from + 1);
  const octets = bytes[packets] === COLON ? afterDigits(bytes, packets + 1) : from;
  if (packets === from + 1 || octets === packets + 1 || bytes[octets] !== CLOSE) return from;
  let at = octets + 1;
  while (bytes[at] === SPACE) at += 1;
  return at;
}

function afterDigits(bytes: Uint8Array, from: number): number {
  let at = from;
  while ((bytes[at] ?? 0) >= ZERO && (bytes[at] ?? 0) <= NINE) at += 1;
  return at;
}

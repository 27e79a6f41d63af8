/** What a scan meets on its way. */
export interface ScanSink {
  /** A string; `from` and `to` are the places of its quotes. */
  string(from: number, to: number): void;
  /** Something stands there in a form that a search for its usual text would miss: `\u0031`, `3.0e4`. */
  unusual(at: number): void;
}

/** No JSON. */
export const NOWHERE = -1;

export const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT] = [0x5b, 0x5d, 0x7b] as const;
export const [QUOTE, COLON] = [0x22, 0x3a] as const;
const [COMMA, BACKSLASH, SPACE, DOT] = [0x2c, 0x5c, 0x20, 0x2e] as const;
const ESCAPED_ASCII = Buffer.from("u00");
const [TRUE, FALSE, NULL] = [Buffer.from("true"), Buffer.from("false"), Buffer.from("null")] as const;

const [NONE, BETWEEN, STRING, OPEN, CLOSE, NUMBER, WORD] = [0, 1, 2, 3, 4, 5, 6] as const;
const KINDS = new Uint8Array(256).fill(NONE);
for (const [kind, characters] of [
  [BETWEEN, " \t\r\n,:"],
  [STRING, '"'],
  [OPEN, "{["],
  [CLOSE, "}]"],
  [NUMBER, "-0123456789"],
  [WORD, "tfn"],
] as const) {
  for (const byte of Buffer.from(characters)) KINDS[byte] = kind;
}

/**
 * Where a JSON value ends, without reading it. Every string, number and word in it is one of JSON's; whether commas,
 * colons and kinds of brackets are where they must be is not looked at.
 *
 * @param from its first character
 */
export function endOfValue(bytes: Uint8Array, from: number, sink: ScanSink): number {
  let depth = 0;
  for (let at = from; at < bytes.length && at !== NOWHERE; ) {
    const kind = KINDS[bytes[at] ?? 0];
    if (kind === STRING) at = endOfString(bytes, at, sink);
    else if (kind === NUMBER) at = endOfNumber(bytes, at, sink);
    else if (kind === WORD) at = endOfWord(bytes, at);
    else if (kind === NONE) return NOWHERE;
    else at += 1;
    if (kind === OPEN) depth += 1;
    else if (kind === CLOSE) depth -= 1;
    if (depth === 0) return at;
  }
  return NOWHERE;
}

/** The next character that is neither a blank nor, where that is allowed, a comma. */
export function skipBlanks(bytes: Uint8Array, from: number, comma = false): number {
  let at = from;
  while (KINDS[bytes[at] ?? 0] === BETWEEN && (bytes[at] ?? 0) !== COLON && (comma || bytes[at] !== COMMA)) at += 1;
  return at;
}

function endOfString(bytes: Uint8Array, from: number, sink: ScanSink): number {
  for (let at = from + 1; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte === QUOTE) {
      sink.string(from, at);
      return at + 1;
    }
    if (byte === BACKSLASH) {
      if (isAt(bytes, at + 1, ESCAPED_ASCII)) sink.unusual(at);
      at += 1;
    } else if (byte < SPACE) return NOWHERE;
  }
  return NOWHERE;
}

/** More than one dot: an address, in something that is no JSON. */
function endOfNumber(bytes: Uint8Array, from: number, sink: ScanSink): number {
  let dots = 0;
  let at = from;
  for (; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte === DOT) dots += 1;
    else if (KINDS[byte] !== NUMBER && !isExponent(byte)) break;
    if (byte === DOT || isExponent(byte)) sink.unusual(at);
  }
  return dots > 1 ? NOWHERE : at;
}

/** e, E, + */
function isExponent(byte: number): boolean {
  return byte === 0x65 || byte === 0x45 || byte === 0x2b;
}

function endOfWord(bytes: Uint8Array, at: number): number {
  const word = bytes[at] === TRUE[0] ? TRUE : bytes[at] === FALSE[0] ? FALSE : NULL;
  return isAt(bytes, at, word) ? at + word.length : NOWHERE;
}

/** Whether these bytes stand there. */
export function isAt(bytes: Uint8Array, at: number, expected: Uint8Array): boolean {
  for (let index = 0; index < expected.length; index += 1) if (bytes[at + index] !== expected[index]) return false;
  return true;
}

/** A part of a YAML text that can be read by itself. */
export interface Piece {
  readonly text: string;
  /** Lines before it. */
  readonly line: number;
}

/**
 * Cuts before each line that begins with `---`: such a line begins a document wherever it stands, even in a block of
 * text (YAML 1.2, 9.1.2). Directives belong to the document after them, so a text with any is left whole.
 */
export function* splitDocuments(text: string): Generator<Piece> {
  yield* cut(text, 0, /^%/m.test(text) ? [] : starts(text, /^---(?=\s|$)/gm));
}

/**
 * Cuts a document whose top level has `items:` with a sequence in block style into the items, each a sequence of one,
 * and the rest.
 * What belongs to an item is indented more than its dash, so a dash at that place begins the next one.
 *
 * @returns undefined: it is no such document
 */
export function splitList(document: Piece): { readonly around: Piece; readonly items: readonly Piece[] } | undefined {
  const { text, line } = document;
  const key = /^items:[ \t]*\r?\n(?=( *)- )/m.exec(text);
  if (key === null) return undefined;
  const [found, indent = ""] = key;
  const begin = key.index + found.length;
  const next = /^[^\s#-]/gm;
  next.lastIndex = begin;
  const end = next.exec(text)?.index ?? text.length;
  const list = text.slice(begin, end);
  const items = [...cut(list, line + newlines(text.slice(0, begin)), starts(list, new RegExp(`^${indent}- `, "gm")))];
  return { around: { text: text.slice(0, begin) + text.slice(end), line }, items };
}

function starts(text: string, pattern: RegExp): number[] {
  return Array.from(text.matchAll(pattern), ({ index }) => index);
}

function* cut(text: string, lineBefore: number, places: readonly number[]): Generator<Piece> {
  let line = lineBefore;
  let from = 0;
  for (const to of [...places.filter((place) => place > 0), text.length]) {
    const piece = text.slice(from, to);
    yield { text: piece, line };
    line += newlines(piece);
    from = to;
  }
}

function newlines(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count++;
  return count;
}

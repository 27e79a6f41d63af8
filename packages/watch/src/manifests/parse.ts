/** Text of a manifest into objects: JSON or YAML, one document or many, lists taken apart. */

import { errorText, isObject, slices, textAt, treeProblem, valueAt } from "@fairlead/base";
import { CORE_SCHEMA, loadAll, mergeTag, YAMLException } from "js-yaml";
import { JsonSplitter, TooMuchError } from "../json-splitter.ts";
import { MAX_DEPTH, MAX_OBJECT_BYTES, mebibytes } from "../limits.ts";

/**
 * The objects of a manifest file: single ones, several documents, Lists and bare arrays, in their order.
 *
 * Text that begins like JSON is read as JSON, which is some hundred times faster than YAML; when it turns out to be
 * YAML in flow style after all, it is read as that.
 *
 * @throws ManifestSyntaxError
 */
export async function* parseManifest(file: string, content: Uint8Array): AsyncGenerator<unknown> {
  if (file.endsWith(".json")) yield* jsonObjects(content);
  else if (beginsLikeJson(content)) yield* jsonOrYaml(content);
  else yield* yamlObjects(content);
}

/**
 * The objects of a JSON text: of a list each by itself, so that only the text is in memory as a whole.
 *
 * @throws ManifestSyntaxError
 */
export async function* jsonObjects(content: Uint8Array): AsyncGenerator<unknown> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const parse = (text: Uint8Array, offset: number): unknown => {
    try {
      return JSON.parse(decoder.decode(text));
    } catch (error) {
      throw located(content, error, offset);
    }
  };
  let items = 0;
  const around = await split(content, () => {
    items++;
  });
  if (around === undefined) throw located(content, new SyntaxError("the text ends early"), content.length);
  const whole = parse(around, 0);
  if (items === 0) yield* itemsOf(whole);
  else {
    const yielding = slices();
    for await (const { text, offset } of itemsIn(content)) {
      yield* listItem(whole, parse(text, offset));
      await yielding();
    }
  }
}

/**
 * Characters that are read in one go, in which nothing else runs. An EndpointSlice of 1,000 endpoints has some 300 kB.
 * The time is linear in the length, whatever the text says: 50 to 100 ms of CPU at most, 200 ms for the first one.
 */
export const MAX_PIECE = 2 ** 19;

/** A part of a YAML text that can be read by itself. */
interface Piece {
  readonly text: string;
  /** Lines before it. */
  readonly line: number;
}

/**
 * The documents of a piece.
 *
 * @throws ManifestSyntaxError
 */
export function documentsOf({ text, line }: Piece): readonly unknown[] {
  if (text.length > MAX_PIECE) {
    throw new ManifestSyntaxError(
      `a document of ${mebibytes(text.length)}; YAML is read up to ${mebibytes(MAX_PIECE)} in one piece: ` +
        "separate documents by ---, or write JSON",
      line + 1,
    );
  }
  const documents = parsed(text, line);
  for (const document of documents) {
    const problem = treeProblem(document, { depth: MAX_DEPTH, size: MAX_OBJECT_BYTES });
    if (problem !== undefined) throw new ManifestSyntaxError(problem, line + 1);
  }
  return documents;
}

/** The objects of a document: itself, the elements of an array, the items of a list. */
export function itemsOf(document: unknown): readonly unknown[] {
  // An empty document is what stands between two separators.
  if (document === null || document === undefined) return [];
  if (Array.isArray(document)) return document.flatMap((element) => listItems(element));
  return listItems(document);
}

/** A manifest file that can't be read; line and column, from 1, where the parser knows. */
export class ManifestSyntaxError extends Error {
  override readonly name = "ManifestSyntaxError";
  readonly line: number | undefined;
  readonly column: number | undefined;

  constructor(message: string, line?: number, column?: number) {
    super(message);
    this.line = line;
    this.column = column;
  }
}

async function* jsonOrYaml(content: Uint8Array): AsyncGenerator<unknown> {
  try {
    // All of it first, as what has been given can't be taken back.
    for await (const _ of jsonObjects(content));
  } catch (error) {
    if (!(error instanceof ManifestSyntaxError) || error instanceof TooMuchManifestError) throw error;
    yield* yamlObjects(content);
    return;
  }
  yield* jsonObjects(content);
}

function beginsLikeJson(content: Uint8Array): boolean {
  const first = content.find((byte) => byte > 0x20);
  return first === 0x7b || first === 0x5b;
}

/** Others have their turn between two slices. */
const SLICE = 64 * 1024;
/** Where the text is no longer, JSON.parse is asked for the place of what is wrong, which reads all of it in one go. */
const LOCATABLE = 2 ** 20;

type Item = ReturnType<JsonSplitter["write"]>[number];

/** @returns what stands around the items; undefined: the text has not ended */
async function split(content: Uint8Array, onItem: (item: Item) => void): Promise<Uint8Array | undefined> {
  const splitter = new JsonSplitter();
  const yielding = slices();
  for (let at = 0; at < content.length; at += SLICE) {
    for (const item of write(splitter, content, at)) {
      if (item.tooMuch !== undefined) throw new TooMuchManifestError(item.tooMuch, lineOf(content, item.offset));
      onItem(item);
    }
    await yielding();
  }
  return splitter.end();
}

async function* itemsIn(content: Uint8Array): AsyncGenerator<Item> {
  const splitter = new JsonSplitter();
  for (let at = 0; at < content.length; at += SLICE) yield* write(splitter, content, at);
}

function write(splitter: JsonSplitter, content: Uint8Array, at: number): readonly Item[] {
  try {
    return splitter.write(content.subarray(at, at + SLICE));
  } catch (error) {
    throw located(content, error, at);
  }
}

function located(content: Uint8Array, error: unknown, offset: number): ManifestSyntaxError {
  const line = lineOf(content, offset);
  if (error instanceof TooMuchError) return new TooMuchManifestError(error.message, line);
  const said = new ManifestSyntaxError(errorText(error), line);
  if (content.length > LOCATABLE) return said;
  try {
    JSON.parse(Buffer.from(content).toString("utf8"));
    return said;
  } catch (found) {
    const text = errorText(found);
    const [, row, column] = /\(line (\d+) column (\d+)\)/.exec(text) ?? [];
    const message = text.replace(/ in JSON at position .*$/s, "");
    return row === undefined
      ? new ManifestSyntaxError(message)
      : new ManifestSyntaxError(message, Number(row), Number(column));
  }
}

/** From 1. */
function lineOf(content: Uint8Array, offset: number): number {
  let line = 1;
  for (let at = content.indexOf(0x0a); at !== -1 && at < offset; at = content.indexOf(0x0a, at + 1)) line++;
  return line;
}

/** A list that is longer is read item by item. */
const LONG_LIST = 2 ** 16;

/**
 * The objects of all documents of a YAML text. Others have their turn between two documents, and between two items of a
 * long list in block style, as kubectl writes it.
 */
async function* yamlObjects(content: Uint8Array): AsyncGenerator<unknown> {
  const yielding = slices();
  for (const piece of splitDocuments(Buffer.from(content).toString("utf8"))) {
    yield* objectsOf(piece);
    await yielding();
  }
}

async function* objectsOf(piece: Piece): AsyncGenerator<unknown> {
  const list = piece.text.length > LONG_LIST ? splitList(piece) : undefined;
  if (list === undefined || (piece.text.length <= MAX_PIECE && refersToOthers(list.items))) {
    for (const document of documentsOf(piece)) yield* itemsOf(document);
    return;
  }
  const yielding = slices();
  const [whole] = documentsOf(list.around);
  for (const item of list.items) {
    for (const element of documentsOf(item).flatMap(itemsOf)) yield* listItem(whole, element);
    await yielding();
  }
}

/** An alias may stand for something in another item: then they can't be read apart. */
function refersToOthers(items: readonly Piece[]): boolean {
  return items.some(({ text }) => /[\s[{,:-]\*[\w-]/.test(text));
}

/** Aliases that one document may have: enough for anchors, not for a "billion laughs". */
const MAX_ALIASES = 100;

/** The parser counts a scalar as a level; `treeProblem` does not. */
const OPTIONS = { schema: CORE_SCHEMA.withTags(mergeTag), maxDepth: MAX_DEPTH + 1, maxAliases: MAX_ALIASES } as const;

function parsed(text: string, line: number): readonly unknown[] {
  try {
    return loadAll(text, OPTIONS);
  } catch (error) {
    throw error instanceof YAMLException ? problemOf(error, line) : error;
  }
}

function problemOf({ reason, mark }: YAMLException, lineOffset: number): ManifestSyntaxError {
  const message = reason.includes("maxDepth") ? `nested deeper than ${MAX_DEPTH} levels` : reason;
  return new ManifestSyntaxError(message, lineOffset + (mark?.line ?? 0) + 1, mark && mark.column + 1);
}

/**
 * Cuts before each line that begins with `---`: such a line begins a document wherever it stands, even in a block of
 * text (YAML 1.2, 9.1.2). Directives belong to the document after them, so a text with any is left whole.
 */
function* splitDocuments(text: string): Generator<Piece> {
  yield* cut(text, 0, /^%/m.test(text) ? [] : starts(text, /^---(?=\s|$)/gm));
}

/**
 * Cuts a document whose top level has `items:` with a sequence in block style into the items, each a sequence of one,
 * and the rest.
 * What belongs to an item is indented more than its dash, so a dash at that place begins the next one.
 *
 * @returns undefined: it is no such document
 */
function splitList(document: Piece): { readonly around: Piece; readonly items: readonly Piece[] } | undefined {
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

/** The objects in an item of the document that `whole` is but for its items. */
function listItem(whole: unknown, item: unknown): readonly unknown[] {
  if (Array.isArray(whole)) return listItems(item);
  const implied = impliedBy(whole);
  // Not a list, whatever it calls items: its kind is skipped.
  return implied === undefined ? [whole] : [withImplied(implied, item)];
}

function listItems(raw: unknown): readonly unknown[] {
  const items = valueAt(raw, "items");
  const implied = Array.isArray(items) || items === null ? impliedBy(raw) : undefined;
  if (implied === undefined) return [raw];
  return (Array.isArray(items) ? items : []).map((item: unknown) => withImplied(implied, item));
}

/** What items of `kind: List`, and of `ServiceList` and the like, don't say themselves; undefined: it is no list. */
function impliedBy(raw: unknown): object | undefined {
  const kind = textAt(raw, "kind");
  if (kind?.endsWith("List") !== true) return undefined;
  const itemKind = kind.slice(0, -"List".length);
  return itemKind === "" ? {} : { apiVersion: valueAt(raw, "apiVersion"), kind: itemKind };
}

function withImplied(implied: object, item: unknown): unknown {
  return isObject(item) ? { ...implied, ...item } : item;
}

/** It is larger or deeper than anything that is read, whatever language it is in. */
class TooMuchManifestError extends ManifestSyntaxError {}

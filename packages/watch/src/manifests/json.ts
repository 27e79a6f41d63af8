import { errorText, slices } from "@fairlead/base";
import { JsonSplitter, TooMuchError } from "../json/splitter.ts";
import { itemsOf, listItem } from "./lists.ts";
import { ManifestSyntaxError, TooMuchManifestError } from "./syntax-error.ts";

/** Others have their turn between two slices. */
const SLICE = 64 * 1024;
/** Where the text is no longer, JSON.parse is asked for the place of what is wrong, which reads all of it in one go. */
const LOCATABLE = 2 ** 20;

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

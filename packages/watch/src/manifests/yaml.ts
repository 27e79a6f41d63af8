import { slices } from "@fairlead/base";
import { itemsOf, listItem } from "./lists.ts";
import { documentsOf, MAX_PIECE } from "./yaml-documents.ts";
import { type Piece, splitDocuments, splitList } from "./yaml-pieces.ts";

/** A list that is longer is read item by item. */
const LONG_LIST = 2 ** 16;

/**
 * The objects of all documents of a YAML text. Others have their turn between two documents, and between two items of a
 * long list in block style, as kubectl writes it.
 *
 * @throws ManifestSyntaxError
 */
export async function* yamlObjects(content: Uint8Array): AsyncGenerator<unknown> {
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

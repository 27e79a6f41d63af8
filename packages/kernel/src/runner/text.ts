const PIECE = 64 * 1024;

/**
 * Joins small pieces of text to pieces of about 64 Ki characters: one write for each, and never the whole text at once.
 */
export async function* coalesce(input: Iterable<string> | AsyncIterable<string>): AsyncGenerator<string, void, void> {
  let held: string[] = [];
  let size = 0;
  for await (const piece of input) {
    held.push(piece);
    size += piece.length;
    if (size < PIECE) continue;
    yield held.join("");
    held = [];
    size = 0;
  }
  if (size > 0) yield held.join("");
}

/** Lines without their ends of a text that comes in pieces; the last one need not be ended. */
export async function* lines(pieces: Iterable<string> | AsyncIterable<string>): AsyncGenerator<string, void, void> {
  let rest = "";
  for await (const piece of pieces) {
    const parts = (rest + piece).split("\n");
    rest = parts.pop() ?? "";
    yield* parts;
  }
  if (rest !== "") yield rest;
}

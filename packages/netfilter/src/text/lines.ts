/**
 * Cuts pieces of text into lines, whatever the pieces' borders. A line end is a line feed, alone or after a carriage
 * return.
 * A last line without one counts too.
 */
export function* linesOf(input: string | Iterable<string>): Generator<string, void, undefined> {
  const feed = new LineFeed();
  for (const chunk of typeof input === "string" ? [input] : input) yield* feed.push(chunk);
  yield* feed.end();
}

class LineFeed {
  #rest = "";

  *push(chunk: string): Generator<string, void, undefined> {
    let start = 0;
    for (let end = chunk.indexOf("\n"); end >= 0; end = chunk.indexOf("\n", start)) {
      yield trimReturn(this.#rest + chunk.slice(start, end));
      this.#rest = "";
      start = end + 1;
    }
    this.#rest += chunk.slice(start);
  }

  *end(): Generator<string, void, undefined> {
    if (this.#rest !== "") yield trimReturn(this.#rest);
    this.#rest = "";
  }
}

function trimReturn(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

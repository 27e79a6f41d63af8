/** Puts items together from lines. */
export interface LineReader<T> {
  /** @returns the item that this line shows to be complete */
  push(line: string): T | undefined;
  /** @returns the last item */
  end(): T | undefined;
}

/** The items of a listing, each as soon as it is complete. */
export async function* read<T>(lines: AsyncIterable<string>, reader: LineReader<T>): AsyncGenerator<T, void, void> {
  for await (const line of lines) {
    const item = reader.push(line);
    if (item !== undefined) yield item;
  }
  const last = reader.end();
  if (last !== undefined) yield last;
}

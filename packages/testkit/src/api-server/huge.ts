/** What a response has that is too much: one text that goes on and on, or arrays in one another. */
export type Excess = "text" | "nesting";

/**
 * A list whose second item is as large as asked for; give it to a response by `Readable.from(…).pipe(response)`.
 *
 * @param bytes about so many in all
 * @param items JSON of the items before and after it
 */
export function* hugeList(excess: Excess, bytes: number, [before, after]: readonly [string, string]) {
  yield `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"200"},"items":[${before},`;
  yield* hugeObject(excess, bytes);
  yield `,${after}]}`;
}

/** A line of a watch whose object is as large as asked for. */
export function* hugeEvent(excess: Excess, bytes: number, version: string) {
  yield '{"type":"ADDED","object":';
  yield* hugeObject(excess, bytes, version);
  yield "}\n";
}

/** Service default/huge. */
function* hugeObject(excess: Excess, bytes: number, version = "150") {
  const metadata = `"metadata":{"name":"huge","namespace":"default","resourceVersion":"${version}"}`;
  yield `{"kind":"Service","apiVersion":"v1",${metadata},"spec":`;
  if (excess === "text") {
    yield '"';
    yield* repeated("x", bytes);
    yield '"}';
  } else {
    const half = Math.ceil(bytes / 2);
    yield* repeated("[", half);
    yield* repeated("]", half);
    yield "}";
  }
}

function* repeated(character: string, times: number) {
  const piece = character.repeat(2 ** 16);
  for (let left = times; left > 0; left -= piece.length) yield left >= piece.length ? piece : piece.slice(0, left);
}

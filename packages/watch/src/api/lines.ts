import { Gathered } from "../json/gathered.ts";
import { MAX_OBJECT_BYTES, mebibytes } from "../limits.ts";

/** A line of a stream. */
export interface Line {
  /** UTF-8 without the line's end; only its beginning where `tooMuch` says why. */
  readonly text: string;
  readonly tooMuch: string | undefined;
}

const NEWLINE = 0x0a;

/**
 * Cuts a stream into lines, each chunk looked at once. A line that has not ended is kept for the next chunk; what is
 * left at the end of the stream is not a line.
 *
 * @returns the lines that the chunk completes, without line ends and empty ones
 */
export function lineSplitter(limit = MAX_OBJECT_BYTES): (chunk: Uint8Array) => Generator<Line> {
  const line = new Gathered();
  const add = (part: Uint8Array) => {
    line.add(part);
    if (line.size > limit) line.drop(`larger than ${mebibytes(limit)}`);
  };
  const take = (): Line => {
    const { dropped: tooMuch } = line;
    return { tooMuch, text: utf8(line.take()).trimEnd() };
  };
  return function* (chunk) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      add(chunk.subarray(start, end));
      start = end + 1;
      const found = take();
      if (found.text !== "") yield found;
    }
    add(chunk.subarray(start));
  };
}

function utf8(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8");
}

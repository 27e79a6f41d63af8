import { ProtocolError } from "./errors.ts";

/** etcd takes objects of 1.5 MiB; their JSON is a few times that. */
const maxLineBytes = 32 * 1024 * 1024;
const newline = 0x0a;

/**
 * Cuts a stream into lines, each chunk looked at once. A line that has not ended is kept for the next chunk; what is
 * left at the end of the stream is not a line.
 *
 * @returns the lines that the chunk completes, without line ends and empty ones
 * @throws ProtocolError a line that doesn't end
 */
export function lineSplitter(limit = maxLineBytes): (chunk: Uint8Array) => Generator<string> {
  let parts: Uint8Array[] = [];
  let size = 0;
  const take = (part: Uint8Array): string => {
    const line = parts.length === 0 ? utf8(part) : Buffer.concat([...parts, part]).toString("utf8");
    parts = [];
    size = 0;
    return line.trimEnd();
  };
  return function* (chunk) {
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      const line = take(chunk.subarray(start, end));
      start = end + 1;
      if (line !== "") yield line;
    }
    if (start === chunk.length) return;
    parts.push(chunk.subarray(start));
    size += chunk.length - start;
    if (size > limit) throw new ProtocolError(`a line of more than ${limit} bytes`);
  };
}

function utf8(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8");
}

import { open } from "node:fs/promises";
import { MAX_FILE_BYTES, mebibytes } from "../limits.ts";

const AT_ONCE = 2 ** 20;

/**
 * A file's content.
 *
 * @throws Error it can't be read, or is larger than `maxFileBytes`, however large it was said to be
 */
export async function readBounded(file: string): Promise<Uint8Array> {
  const handle = await open(file);
  try {
    const { size } = await handle.stat();
    if (size > MAX_FILE_BYTES) throw tooLarge(mebibytes(size));
    const parts: Uint8Array[] = [];
    for (let total = 0; ; ) {
      const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafeSlow(AT_ONCE), 0, AT_ONCE);
      if (bytesRead === 0) return parts.length === 1 ? (parts[0] ?? buffer) : Buffer.concat(parts);
      total += bytesRead;
      if (total > MAX_FILE_BYTES) throw tooLarge("growing");
      parts.push(buffer.subarray(0, bytesRead));
    }
  } finally {
    await handle.close();
  }
}

function tooLarge(size: string): Error {
  return new Error(`the file is ${size}; a manifest file may have ${mebibytes(MAX_FILE_BYTES)}: split it`);
}

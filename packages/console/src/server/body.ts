import type { IncomingMessage } from "node:http";
import { RequestError } from "./request-error.ts";

/** Bytes of pasted manifests that are taken: more than etcd takes of one object, less than hurts. */
const MOST_BYTES = 2 << 20;

/**
 * The JSON that a request brings.
 *
 * @throws RequestError when it is too long, or no JSON
 */
export async function jsonBody(request: IncomingMessage): Promise<unknown> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of request) {
    size += piece.length;
    if (size > MOST_BYTES) throw new RequestError(413, `at most ${MOST_BYTES} bytes`);
    pieces.push(piece);
  }
  try {
    return JSON.parse(Buffer.concat(pieces).toString("utf8"));
  } catch {
    throw new RequestError(400, "the request is not JSON");
  }
}

import type { IncomingMessage, ServerResponse } from "node:http";
import { request } from "node:https";

/** An API server that stands behind a gate. */
export interface Behind {
  readonly host: string;
  readonly port: string;
  /** In place of what the client has sent; default: just that. */
  readonly authorization?: string;
}

/** Hands a request on to the API server, and its answer to `give`, which by default hands that on as it is. */
export function leadOn(
  incoming: IncomingMessage,
  response: ServerResponse,
  { host, port, authorization }: Behind,
  give: (answer: IncomingMessage) => void = (answer) => void answer.pipe(response),
): void {
  const { method, url: path, headers } = incoming;
  const sent = authorization === undefined ? headers : { ...headers, authorization };
  // Its certificate is known, or is the gate's own.
  const outgoing = request({ host, port, method, path, headers: sent, rejectUnauthorized: false });
  outgoing.on("error", () => response.destroy());
  response.on("close", () => outgoing.destroy());
  outgoing.on("response", (answer) => {
    // The client may be gone before the answer is whole.
    answer.on("error", () => response.destroy());
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    give(answer);
  });
  incoming.pipe(outgoing);
}

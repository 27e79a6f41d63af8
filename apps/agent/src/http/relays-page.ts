import { Readable } from "node:stream";
import type { RelayTraffic } from "@fairlead/backend-userspace";
import { nextTurn } from "@fairlead/base";
import { PLAIN_TEXT } from "./answers.ts";
import type { Handler } from "./app.ts";

/** What a node's relays are asked for. */
export type RelayTable = Pick<RelayTraffic, "listening" | "connections">;

/** Lines that are made in one turn of the event loop, some tenths of a millisecond. */
const AT_ONCE = 200;

/**
 * Where relays listen and which client and endpoint each connects, JSON by lines: in userspace mode no other program
 * knows the endpoint of a connection. For those on the node only, as it names clients. Nothing is kept for it: it is
 * read from the sockets on request.
 *
 * @param table absent: nothing is relayed, and there are no lines
 */
export function relaysPage(table: RelayTable | undefined): Handler {
  return ({ local }) => {
    if (!local) return { status: 403, headers: PLAIN_TEXT, body: "only from this node: the loopback address\n" };
    const headers = { "Content-Type": "application/jsonl", "X-Content-Type-Options": "nosniff" };
    return { status: 200, headers, body: Readable.from(inTurns(table === undefined ? [] : lines(table))) };
  };
}

function* lines(table: RelayTable): Generator<string, void, void> {
  for (const relay of table.listening) yield `${JSON.stringify({ listening: relay })}\n`;
  for (const connection of table.connections()) yield `${JSON.stringify({ connection })}\n`;
}

async function* inTurns(all: Iterable<string>): AsyncGenerator<Buffer, void, void> {
  let piece: string[] = [];
  for (const line of all) {
    if (piece.push(line) < AT_ONCE) continue;
    yield Buffer.from(piece.join(""));
    piece = [];
    await nextTurn();
  }
  if (piece.length > 0) yield Buffer.from(piece.join(""));
}

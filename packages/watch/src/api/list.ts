import { slices, type Yield } from "@fairlead/base";
import type { ListSession } from "../publisher.ts";
import { objectKeyOf, resourceVersionOf } from "../raw.ts";
import { type ListHead, type ListItem, type ListParser, listParser } from "./list-parser.ts";

/**
 * Reads one response of a list, item by item as it arrives.
 *
 * @throws ProtocolError, BrokenResponseError
 */
export async function readList(
  chunks: AsyncIterable<Uint8Array>,
  session: ListSession,
  parser: ListParser = listParser(),
): Promise<ListHead> {
  const yielding = slices();
  for await (const chunk of chunks) {
    for (const item of parser.write(chunk)) await give(item, session, yielding);
    await yielding();
  }
  return parser.end();
}

async function give(item: ListItem, session: ListSession, yielding: Yield): Promise<void> {
  if ("unreadable" in item) session.skip(item.identity.key, item.unreadable);
  else {
    const key = objectKeyOf(item.raw);
    if (key === undefined) session.skip(undefined, NAMELESS);
    else await session.upsert(key, resourceVersionOf(item.raw) ?? "", item.raw);
  }
  await yielding();
}

/** Said of an object that nothing can be called by. */
export const NAMELESS = "metadata.name is missing";

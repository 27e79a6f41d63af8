import { type Breathe, breather } from "../breathe.ts";
import type { ListSession } from "../publisher.ts";
import { keyOf, resourceVersionOf } from "../raw.ts";
import { type ListHead, listParser } from "./list-parser.ts";

/**
 * Reads one response of a list, item by item as it arrives.
 *
 * @param onNameless told of items without a usable name
 * @throws ProtocolError, BrokenResponseError
 */
export async function readList(
  chunks: AsyncIterable<Uint8Array>,
  session: ListSession,
  onNameless: () => void,
): Promise<ListHead> {
  const parser = listParser();
  const breathe = breather();
  for await (const chunk of chunks) await giveAll(parser.write(chunk), session, onNameless, breathe);
  return parser.end();
}

async function giveAll(
  items: readonly unknown[],
  session: ListSession,
  onNameless: () => void,
  breathe: Breathe,
): Promise<void> {
  for (const raw of items) {
    const key = keyOf(raw);
    if (key === undefined) onNameless();
    else await session.upsert(key, resourceVersionOf(raw) ?? "", raw);
    await breathe();
  }
}

import { type CommandSource, renderTables } from "@fairlead/netfilter";

/** The text that iptables-restore reads, made while it is read; a turn of the event loop between two pieces. */
export async function* payload(
  sections: Iterable<CommandSource>,
  breathe: () => Promise<void>,
): AsyncGenerator<string, void, undefined> {
  for (const piece of renderTables(sections)) {
    yield piece;
    await breathe();
  }
}

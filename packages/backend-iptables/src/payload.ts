import { type CommandSource, renderCommand, type Table } from "@fairlead/netfilter";

/** Rules that payloads have written, by table. */
export type Written = Map<Table, number>;

/** Small enough to be made within a few milliseconds. */
const PIECE_CHARACTERS = 65_536;

/**
 * The text of a restore payload, rendered while it is read: each section is a transaction of its table. Sections without
 * a command are left out; the commands of one are asked for when those before it are written.
 *
 * @param breathe awaited between two pieces
 * @param written counts the rules
 */
export async function* payloadText(
  sections: readonly CommandSource[],
  breathe: () => Promise<void>,
  written: Written,
): AsyncGenerator<string, void, undefined> {
  let piece = "";
  for (const line of payloadLines(sections, written)) {
    piece += `${line}\n`;
    if (piece.length < PIECE_CHARACTERS) continue;
    yield piece;
    piece = "";
    await breathe();
  }
  if (piece !== "") yield piece;
}

function* payloadLines(sections: readonly CommandSource[], written: Written): Generator<string> {
  for (const { table, commands } of sections) {
    let rules = 0;
    let open = false;
    for (const command of commands) {
      if (!open) yield `*${table}`;
      open = true;
      if (command.kind === "append" || command.kind === "insert") rules++;
      yield renderCommand(command);
    }
    if (open) yield "COMMIT";
    written.set(table, (written.get(table) ?? 0) + rules);
  }
}

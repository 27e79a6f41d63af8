import { type CommandSource, renderCommand } from "@fairlead/netfilter";

/** Small enough to be made within a few milliseconds. */
const PIECE_CHARACTERS = 65_536;

/**
 * Lines as the text that a tool reads, made while it is read.
 *
 * @param breathe awaited between two pieces
 */
export async function* payloadText(
  lines: Iterable<string>,
  breathe: () => Promise<void>,
): AsyncGenerator<string, void, undefined> {
  let piece = "";
  for (const line of lines) {
    piece += `${line}\n`;
    if (piece.length < PIECE_CHARACTERS) continue;
    yield piece;
    piece = "";
    await breathe();
  }
  if (piece !== "") yield piece;
}

/** The lines of iptables-restore; tables without a command are left out. */
export function* ruleLines(sections: readonly CommandSource[]): Generator<string> {
  for (const { table, commands } of sections) {
    let open = false;
    for (const command of commands) {
      if (!open) yield `*${table}`;
      open = true;
      yield renderCommand(command);
    }
    if (open) yield "COMMIT";
  }
}

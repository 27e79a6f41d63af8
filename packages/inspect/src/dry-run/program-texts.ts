import { slices } from "@fairlead/base";

/** Text that the agent would give to a program. */
export interface ProgramText {
  /** The program with its arguments, as it would be started. */
  readonly argv: readonly [program: string, ...args: string[]];
  /** Its pieces as they were written: where it is large, putting them together takes longer than using them. */
  readonly pieces: readonly string[];
}

/** Takes in, in order, what a backend writes; what goes to one program in a row is one text. */
export class ProgramTexts {
  readonly #texts: { readonly argv: ProgramText["argv"]; pieces: string[] }[] = [];

  async add(argv: ProgramText["argv"], payload: Iterable<string> | AsyncIterable<string>): Promise<void> {
    const last = this.#texts.at(-1);
    const into = last?.argv.join(" ") === argv.join(" ") ? last : { argv, pieces: [] };
    if (into !== last) this.#texts.push(into);
    const yielding = slices();
    for await (const piece of payload) {
      if (piece !== "") into.pieces.push(piece);
      const turn = yielding();
      if (turn !== undefined) await turn;
    }
  }

  all(): readonly ProgramText[] {
    return this.#texts.filter(({ pieces }) => pieces.length > 0);
  }
}

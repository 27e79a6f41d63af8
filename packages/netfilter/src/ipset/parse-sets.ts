import { Problem } from "../rule/problem.ts";
import type { SetState } from "./ipset.ts";
import { familyOption } from "./parse-command.ts";

/**
 * Puts sets together from the lines of `ipset save`, which prints each set's create line and then its members. Options
 * of members (timeout, comment, …) are left out.
 */
export class SetReader {
  #open: { readonly set: Omit<SetState, "members">; readonly members: Set<string> } | undefined;

  /**
   * @returns the set that this line shows to be complete
   * @throws Problem for a line that `ipset save` does not print
   */
  push(line: string): SetState | undefined {
    if (line === "") return undefined;
    const [command, name, word, ...options] = line.split(" ");
    if (name === undefined || word === undefined) throw new Problem(`no line of ipset save: ${line}`);
    if (command === "add") {
      this.#add(name, word, line);
      return undefined;
    }
    if (command !== "create") throw new Problem(`no line of ipset save: ${line}`);
    const complete = this.end();
    this.#open = { set: { name, type: word, ...familyOption(options) }, members: new Set() };
    return complete;
  }

  /** @returns the last set */
  end(): SetState | undefined {
    const open = this.#open;
    this.#open = undefined;
    return open && { ...open.set, members: open.members };
  }

  #add(name: string, member: string, line: string): void {
    if (this.#open?.set.name !== name) throw new Problem(`a member of a set that has not begun: ${line}`);
    this.#open.members.add(member);
  }
}

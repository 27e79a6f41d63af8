import { Problem } from "../rule/problem.ts";
import type { Table } from "../rule/rule.ts";
import { parseTableLine } from "../text/line.ts";

/** The tables of a listing, one after the other: `*nat`, what is in it, `COMMIT`. */
export class SavedTables<Content> {
  readonly #make: (table: Table) => Content;
  readonly #done = new Map<Table, Content>();
  #table: Table | undefined;
  #content: Content | undefined;

  /** @param make what the content of a table that begins goes to */
  constructor(make: (table: Table) => Content) {
    this.#make = make;
  }

  /**
   * Reads a line that is neither a chain nor a rule.
   *
   * @throws Problem
   */
  read(line: string): void {
    if (line === "" || line.startsWith("#")) return;
    if (line.startsWith("*")) this.#begin(parseTableLine(line));
    else if (line === "COMMIT") this.#commit();
    else throw new Problem("neither a table, a chain, a rule nor COMMIT");
  }

  /** The table that was begun and not committed, if any. */
  get open(): Content | undefined {
    return this.#content;
  }

  /** @throws Problem when no table was begun */
  get current(): Content {
    if (this.#content === undefined) throw new Problem("no table was begun");
    return this.#content;
  }

  /** @throws Problem when a table was begun and not committed */
  end(): ReadonlyMap<Table, Content> {
    if (this.#table !== undefined) throw new Problem(`the text ends within table ${this.#table}`);
    return this.#done;
  }

  #begin(table: Table): void {
    if (this.#table !== undefined) throw new Problem(`table ${this.#table} is not committed yet`);
    if (this.#done.has(table)) throw new Problem(`table ${table} stands there twice`);
    this.#table = table;
    this.#content = this.#make(table);
  }

  #commit(): void {
    const content = this.current;
    if (this.#table !== undefined) this.#done.set(this.#table, content);
    this.#table = undefined;
    this.#content = undefined;
  }
}

import type { Hex, SetElement } from "@fairlead/netfilter/nft";
import type { ElementChanges } from "./pool-changes.ts";
import type { TableWriter } from "./table-writer.ts";

/** Elements in one message: few messages, and short work for each. */
export const IN_ONE_MESSAGE = 256;

/** Elements that come, gathered by their set, so that many go with one message. */
export class ElementBuffers implements ElementChanges {
  readonly #to: Pick<TableWriter, "addElements">;
  readonly #added = new Map<string, SetElement[]>();

  constructor(to: Pick<TableWriter, "addElements">) {
    this.#to = to;
  }

  add(set: string, element: SetElement): void {
    const buffer = this.#added.get(set);
    if (buffer === undefined) this.#added.set(set, [element]);
    else if (buffer.push(element) >= IN_ONE_MESSAGE) this.#write(set, buffer);
  }

  delete(set: string, key: Hex): void {
    throw new Error(`set ${set} is new; it has no element ${key} that could go`);
  }

  flush(): void {
    for (const [set, buffer] of this.#added) this.#write(set, buffer);
  }

  #write(set: string, buffer: SetElement[]): void {
    if (buffer.length > 0) this.#to.addElements(set, buffer);
    buffer.length = 0;
  }
}

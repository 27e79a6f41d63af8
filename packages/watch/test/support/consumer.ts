import { objectAt, textAt, valueAt } from "@fairlead/base";
import type { ObjectChange, Subscription } from "../../src/index.ts";

/** What a decoder in these tests keeps: a spec, or nothing for objects that are marked as bad. */
export interface Kept {
  readonly version: string;
  readonly spec: unknown;
}

/** A consumer that keeps what it was given and all the changes, and can be waited for. */
export class Consumer {
  readonly state = new Map<string, Kept>();
  readonly changes: ObjectChange<Kept>[] = [];
  synced = 0;
  /** Set to hold back: each change waits for it. */
  hold: Promise<void> | undefined;
  #waiting: { holds: () => boolean; wake: () => void }[] = [];

  readonly subscription: Subscription<Kept> = {
    decode: (raw) => {
      const spec = valueAt(raw, "spec");
      if (valueAt(spec, "throws") === true) throw new Error("undecodable");
      if (valueAt(spec, "type") === "bad") return undefined;
      return { version: textAt(objectAt(raw, "metadata"), "resourceVersion") ?? "", spec };
    },
    onChange: (change) => {
      this.#take(change);
      return this.hold;
    },
  };

  /** Resolves once `holds` is true after a change, or now. */
  async until(holds: () => boolean): Promise<void> {
    if (!holds()) await new Promise<void>((wake) => this.#waiting.push({ holds, wake }));
  }

  keys(): string[] {
    return [...this.state.keys()].sort();
  }

  #take(change: ObjectChange<Kept>): void {
    this.changes.push(change);
    if (change.type === "upsert") this.state.set(change.key, change.object);
    else if (change.type === "synced") this.synced++;
    else if (!this.state.delete(change.key)) throw new Error(`deleted what was never given: ${change.key}`);
    const woken = this.#waiting.filter(({ holds }) => holds());
    this.#waiting = this.#waiting.filter((one) => !woken.includes(one));
    for (const { wake } of woken) wake();
  }
}

import type { Nfacct } from "@fairlead/kernel";
import type { Log } from "../log/log.ts";

/** Milliseconds for which a counter is taken to be there as it was: both families' first syncs ask within them. */
const KNOWN_MS = 3_000;

/** Makes the nfacct counters that rules name. Where the kernel has none, one line says so for all of them. */
export class CounterMaker {
  readonly #nfacct: Nfacct;
  readonly #log: Log;
  readonly #now: () => number;
  readonly #known = new Map<string, { readonly asked: number; readonly exists: Promise<boolean> }>();
  #reported = false;

  /** @param now milliseconds of a clock that never goes back */
  constructor(nfacct: Nfacct, log: Log, now: () => number = () => performance.now()) {
    this.#nfacct = nfacct;
    this.#log = log;
    this.#now = now;
  }

  /** @returns those that exist now */
  async ensure(names: readonly string[]): Promise<ReadonlySet<string>> {
    const existing = new Set<string>();
    // One after the other: the start of a process holds the event loop for milliseconds.
    for (const name of names) if (await this.#ensure(name)) existing.add(name);
    return existing;
  }

  #ensure(name: string): Promise<boolean> {
    const known = this.#known.get(name);
    const asked = this.#now();
    if (known !== undefined && asked - known.asked < KNOWN_MS) return known.exists;
    const exists = this.#make(name);
    this.#known.set(name, { asked, exists });
    return exists;
  }

  async #make(name: string): Promise<boolean> {
    const result = await this.#nfacct.ensure(name);
    if (!result.ok) this.#report(result.reason);
    return result.ok;
  }

  #report(reason: string): void {
    if (this.#reported) return;
    this.#reported = true;
    this.#log.info("nfacct unavailable; packet counters disabled", { reason });
  }
}

import type { Nfacct } from "@fairlead/kernel";
import type { Log } from "../log/log.ts";

/** Makes the nfacct counters that rules name. Where the kernel has none, one line says so for all of them. */
export class CounterMaker {
  readonly #nfacct: Nfacct;
  readonly #log: Log;
  #told = false;

  constructor(nfacct: Nfacct, log: Log) {
    this.#nfacct = nfacct;
    this.#log = log;
  }

  /** @returns those that exist now */
  async ensure(names: readonly string[]): Promise<ReadonlySet<string>> {
    const existing = await Promise.all(names.map((name) => this.#ensure(name)));
    return new Set(existing.flat());
  }

  async #ensure(name: string): Promise<readonly string[]> {
    const result = await this.#nfacct.ensure(name);
    if (result.ok) return [name];
    this.#tell(result.reason);
    return [];
  }

  #tell(reason: string): void {
    if (this.#told) return;
    this.#told = true;
    this.#log.info("Packets are not counted by nfacct; the rules do without", { reason });
  }
}

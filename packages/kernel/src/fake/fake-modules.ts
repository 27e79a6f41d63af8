import type { ModuleResult, Modules } from "../modules/modules.ts";

/** Kernel modules in memory. */
export class FakeModules implements Modules {
  readonly #loaded: Set<string>;
  readonly #loadable: ReadonlySet<string>;

  /** @param loadable those that `load` finds alongside the ones that are there from the start */
  constructor(loaded: Iterable<string> = [], loadable: Iterable<string> = []) {
    this.#loaded = new Set(loaded);
    this.#loadable = new Set(loadable);
  }

  async has(name: string): Promise<boolean> {
    return this.#loaded.has(name);
  }

  async load(name: string): Promise<ModuleResult> {
    if (this.#loaded.has(name)) return { ok: true, how: "loaded" };
    if (!this.#loadable.has(name)) return { ok: false, reason: `kernel module ${name} is missing: not found` };
    this.#loaded.add(name);
    return { ok: true, how: "modprobe" };
  }
}

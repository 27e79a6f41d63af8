/** The backend of iptables mode. */

import { inSlices } from "@fairlead/base";
import type { Backend, Difference, ForwardingPlan, PlanChange, SyncReport } from "@fairlead/core";
import { witnessed } from "@fairlead/netfilter";
import { applyChange, contextForChange, type Programmed, report, stepsOf } from "./apply.ts";
import { removeIptablesMode } from "./cleanup.ts";
import type { Written } from "./commit.ts";
import { StaleChains } from "./commit.ts";
import { iptablesSemantics } from "./facts.ts";
import { FixedChains } from "./fixed-chains.ts";
import { type Found, fullSync, readBeforeSync } from "./full-sync.ts";
import { consequencesOf, lackingParts, servedChange, servedPlan } from "./optional-parts.ts";
import { type IptablesOptions, type ResolvedOptions, resolveOptions } from "./options.ts";
import { type OptionalPart, type RenderContext, renderContext } from "./plan/settings.ts";
import type { RulesPort } from "./port.ts";

/**
 * The iptables mode of one IP family. Starts nothing until it is called.
 *
 * @throws RangeError when an option is out of range
 */
export function createIptablesBackend(port: RulesPort, options: IptablesOptions = {}): Backend {
  return new IptablesBackend(port, resolveOptions(port.family, options));
}

/** As much passes in a large cluster between what a full sync reads and what it writes. */
const RECENT_MS = 5_000;

class IptablesBackend implements Backend {
  readonly semantics = iptablesSemantics;
  readonly #port: RulesPort;
  readonly #options: ResolvedOptions;
  readonly #stale: StaleChains;
  readonly #fixed: FixedChains;
  /** Undefined until a full sync was accepted, and after anything was not. */
  #programmed: Programmed | undefined;
  /** What the next full sync begins with, where that was announced, and since when it is read. */
  #reading: { readonly found: Promise<Found>; readonly since: number } | undefined;
  /** What the kernel has not, as far as a full sync that failed has shown. */
  #lacking: ReadonlySet<OptionalPart> = new Set();

  constructor(port: RulesPort, resolved: ResolvedOptions) {
    this.#port = port;
    this.#options = resolved;
    this.#stale = new StaleChains(resolved.syncPeriod);
    this.#fixed = new FixedChains(port, resolved);
  }

  prepare(): void {
    const now = this.#options.clock.monotonic();
    if (this.#reading !== undefined && now - this.#reading.since < RECENT_MS) return;
    const found = readBeforeSync(this.#port, this.#options);
    // The caller that awaits it gets the error.
    found.catch(() => {});
    this.#reading = { found, since: now };
  }

  async sync(plan: ForwardingPlan): Promise<SyncReport> {
    this.#programmed = undefined;
    const reading = this.#reading?.found ?? readBeforeSync(this.#port, this.#options);
    this.#reading = undefined;
    const found = await reading;
    this.#fixed.forget();
    if (this.#lacking.size > 0) await this.#findLacking(found);
    try {
      return await this.#fullSync(plan, found);
    } catch (error) {
      if (!(await this.#findLacking(found))) throw error;
    }
    return this.#fullSync(plan, await readBeforeSync(this.#port, this.#options));
  }

  async #fullSync(plan: ForwardingPlan, found: Found): Promise<SyncReport> {
    const lacking = this.#lacking;
    const wanted = servedPlan(plan, lacking);
    const write = () => fullSync(this.#port, wanted, { ...found, lacking }, this.#stale, this.#options);
    const { programmed, written } = await witnessed(this.#port, write);
    this.#programmed = programmed;
    return this.#report("full", programmed, written);
  }

  /** @returns whether something is lacking that rules were rendered with */
  async #findLacking({ counters }: Found): Promise<boolean> {
    const before = this.#lacking;
    this.#lacking = await lackingParts(this.#port, counters);
    return [...this.#lacking].some((part) => !before.has(part));
  }

  #report(kind: SyncReport["kind"], { totals }: Programmed, written: Written): SyncReport {
    const refused = consequencesOf([...this.#lacking]);
    return { ...report(kind, totals, written), ...(kind === "full" && refused.length > 0 && { refused }) };
  }

  async apply(plan: ForwardingPlan, change: PlanChange): Promise<SyncReport> {
    this.#reading = undefined;
    const before = this.#programmed;
    const served = servedChange(change, this.#lacking);
    const context = before && contextForChange(before, plan, served, this.#options);
    if (before === undefined || context === undefined) return this.sync(plan);
    return this.#applySteps(await inSlices(stepsOf(served), this.#options), before, context);
  }

  async #applySteps(steps: readonly PlanChange[], before: Programmed, context: RenderContext): Promise<SyncReport> {
    this.#programmed = undefined;
    const write = () => this.#writeSteps(steps, before, context);
    const { programmed, written } = await witnessed(this.#port, write, (done) => someRules(done.written));
    if (written.size > 0) this.#fixed.forget();
    this.#programmed = programmed;
    return this.#report("partial", programmed, written);
  }

  async #writeSteps(steps: readonly PlanChange[], before: Programmed, context: RenderContext) {
    const written: Written = new Map();
    let programmed = before;
    for (const change of steps) {
      const step = { change, before: programmed, context };
      const applied = await applyChange(this.#port, step, this.#stale, this.#options);
      programmed = applied.programmed;
      for (const [table, rules] of applied.written) written.set(table, (written.get(table) ?? 0) + rules);
    }
    return { programmed, written };
  }

  async difference(plan: ForwardingPlan): Promise<Difference | undefined> {
    const lacking = this.#lacking;
    const context =
      this.#programmed?.context ?? renderContext(this.#options, plan, { counters: new Set<string>(), lacking });
    return this.#fixed.difference({ plan: servedPlan(plan, lacking), context });
  }

  async cleanup(): Promise<void> {
    this.#programmed = undefined;
    await removeIptablesMode(this.#port);
  }
}

function someRules(written: Written): boolean {
  return [...written.values()].some((rules) => rules > 0);
}

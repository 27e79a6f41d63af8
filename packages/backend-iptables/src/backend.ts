import { inSlices } from "@fairlead/base";
import type { Backend, Difference, ForwardingPlan, PlanChange, SyncReport } from "@fairlead/core";
import { applyChange, contextForChange } from "./apply.ts";
import { removeIptablesMode } from "./cleanup.ts";
import type { Written } from "./commit.ts";
import { type Found, fullSync, readBeforeSync } from "./full-sync.ts";
import { FixedChains, hasCanary } from "./intact.ts";
import { type Extent, Lookout } from "./lookout.ts";
import { type IptablesOptions, type ResolvedOptions, resolveOptions } from "./options.ts";
import { type RenderContext, renderContext } from "./plan/settings.ts";
import type { RulesPort } from "./port.ts";
import { type Programmed, report } from "./programmed.ts";
import { iptablesSemantics } from "./semantics.ts";
import { StaleChains } from "./stale-chains.ts";
import { stepsOf } from "./steps.ts";
import { Witness } from "./witness.ts";

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
  readonly #lookout: Lookout;
  readonly #fixed: FixedChains;
  readonly #witness: Witness;
  /** Undefined until a full sync was accepted, and after anything was not. */
  #programmed: Programmed | undefined;
  /** What the next full sync begins with, where that was announced, and since when it is read. */
  #reading: { readonly found: Promise<Found>; readonly since: number } | undefined;

  constructor(port: RulesPort, resolved: ResolvedOptions) {
    this.#port = port;
    this.#options = resolved;
    this.#stale = new StaleChains(resolved.syncPeriod);
    this.#lookout = new Lookout(resolved.clock, port.glance);
    this.#fixed = new FixedChains(port, resolved);
    this.#witness = new Witness(port);
  }

  prepare(): void {
    const now = this.#options.clock.monotonic();
    if (this.#reading !== undefined && now - this.#reading.since < RECENT_MS) return;
    const found = readBeforeSync(this.#port, this.#options);
    // What is wrong is told to whoever awaits it.
    found.catch(() => {});
    this.#reading = { found, since: now };
  }

  async sync(plan: ForwardingPlan): Promise<SyncReport> {
    this.#programmed = undefined;
    const reading = this.#reading?.found ?? readBeforeSync(this.#port, this.#options);
    this.#reading = undefined;
    const found = await reading;
    this.#lookout.forget();
    this.#fixed.forget();
    const before = await this.#witness.states();
    const { programmed, written } = await fullSync(this.#port, plan, found, this.#stale, this.#options);
    await this.#witness.confirmAll(before);
    this.#programmed = programmed;
    await this.#lookout.wrote("nat", programmed.totals.nat);
    return report("full", programmed.totals, written);
  }

  async apply(plan: ForwardingPlan, change: PlanChange): Promise<SyncReport> {
    this.#reading = undefined;
    const before = this.#programmed;
    const context = before && contextForChange(before, plan, change, this.#options);
    if (before === undefined || context === undefined) return this.sync(plan);
    return this.#applySteps(await inSlices(stepsOf(change), this.#options), before, context);
  }

  async #applySteps(steps: readonly PlanChange[], before: Programmed, context: RenderContext): Promise<SyncReport> {
    this.#programmed = undefined;
    this.#fixed.forgetDispatch();
    const stood = await this.#lookout.stands("nat", before.totals.nat);
    const states = await this.#witness.states();
    const all: Written = new Map();
    let programmed = before;
    for (const change of steps) {
      const step = { change, before: programmed, context };
      const applied = await applyChange(this.#port, step, this.#stale, this.#options);
      programmed = applied.programmed;
      for (const [table, rules] of applied.written) all.set(table, (all.get(table) ?? 0) + rules);
    }
    await this.#witness.confirm(states, all, [before.totals, programmed.totals]);
    this.#programmed = programmed;
    if (stood !== undefined) await this.#lookout.wrote("nat", programmed.totals.nat, stood);
    return report("partial", programmed.totals, all);
  }

  async difference(plan: ForwardingPlan): Promise<Difference | undefined> {
    return (await this.#isIntact(plan)) ? undefined : { what: ["the rules of iptables"], repaired: false };
  }

  async #isIntact(plan: ForwardingPlan): Promise<boolean> {
    const { totals = { filter: 0, nat: 0 }, context = renderContext(this.#options, plan, new Set()) } =
      this.#programmed ?? {};
    const canary = async () => ((await hasCanary(this.#port)) ? "all" : undefined);
    if (!(await this.#lookout.holds("mangle", 0, canary))) return false;
    // Filter is the smaller one.
    for (const table of ["filter", "nat"] as const) {
      const look = (extent: Extent) => this.#fixed.hold(table, { plan, context }, extent);
      if (!(await this.#lookout.holds(table, totals[table], look))) return false;
    }
    return true;
  }

  async cleanup(): Promise<void> {
    this.#programmed = undefined;
    await removeIptablesMode(this.#port);
  }
}

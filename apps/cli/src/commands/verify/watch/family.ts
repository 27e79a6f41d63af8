import { type Clock, errorChainText, inSlices, type Slicing, slices } from "@fairlead/base";
import { type ForwardingPlan, type IPFamily, type PlanChange, type ServicePortGroup, splitKey } from "@fairlead/core";
import {
  type DifferenceEvent,
  type DifferenceTarget,
  DifferenceTracker,
  destinationText,
  groupDifferences,
  Rounds,
  straysIn,
  type TrackedDifference,
} from "@fairlead/inspect";
import type { KernelReader } from "@fairlead/kernel";
import { type Reading, readKernel, type SeenMode } from "./kernel.ts";

export interface WatchedFamilyParts {
  readonly family: IPFamily;
  readonly mode: SeenMode;
  readonly kernel: KernelReader;
  /** Milliseconds that a difference lasts before it is news. */
  readonly grace: number;
  readonly clock: Clock;
  readonly slicing?: Partial<Slicing>;
  readonly onNews: (news: DifferenceEvent) => void;
}

interface Round {
  /** When it ended. */
  readonly at: number;
  readonly milliseconds: number;
  readonly services: number;
}

/** Milliseconds of a look that go to services that nothing was heard of. */
const SHARE_MS = 300;
const STRAY = { kind: "extra", wanted: "nothing: no service has it", found: "it is taken" } as const;

/**
 * A family's plan alongside a kernel that a proxy programs. It takes each change of the plan; at each look it reads the
 * kernel, where that may have changed, and follows packets to what changed in the plan, to what differed last time, and
 * to a share of all others.
 */
export class WatchedFamily {
  readonly family: IPFamily;
  readonly #parts: WatchedFamilyParts;
  readonly #suspicions: DifferenceTracker;
  readonly #rounds = new Rounds();
  #plan: ForwardingPlan | undefined;
  /** The destinations without a service have to be found again. */
  #planChanged = false;
  /** What was read last, kept while there is something to look for in it. */
  #reading: Reading | undefined;
  #generation: number | undefined;
  #strays: ReadonlyMap<string, DifferenceTarget> = new Map();
  #problem: string | undefined;
  #roundBegan = 0;
  #round: Round | undefined;

  constructor(parts: WatchedFamilyParts) {
    this.#parts = parts;
    this.family = parts.family;
    this.#suspicions = new DifferenceTracker(parts.grace);
  }

  get suspicions(): readonly TrackedDifference[] {
    return this.#suspicions.all;
  }

  /** Milliseconds until a comparison could report a difference; undefined: there is none yet. */
  get nextIn(): number | undefined {
    return this.#problem === undefined ? this.#suspicions.nextIn(this.#now()) : undefined;
  }

  /** Why the last look saw nothing; undefined: it did. */
  get problem(): string | undefined {
    return this.#problem;
  }

  get round(): Round | undefined {
    return this.#round;
  }

  /**
   * The plan is this from now on.
   *
   * @param change what it underwent since the last call; undefined: it is the first one
   */
  take(plan: ForwardingPlan, change: PlanChange | undefined): void {
    this.#plan = plan;
    this.#planChanged = true;
    for (const id of change?.groups.keys() ?? []) {
      this.#suspicions.changed(id, this.#now());
      this.#rounds.hurry(id);
    }
    if (change !== undefined && change.node === undefined) return;
    this.#allChanged(plan);
    this.#begin(plan);
  }

  /** Never rejects: what cannot be read is a problem to be reported. */
  async look(): Promise<void> {
    try {
      if (this.#plan !== undefined) await this.#look(this.#plan);
      this.#problem = undefined;
    } catch (error) {
      this.#problem = errorChainText(error);
      this.#reading = undefined;
      this.#generation = undefined;
    }
  }

  async #look(plan: ForwardingPlan): Promise<void> {
    const { mode, kernel } = this.#parts;
    const generation = await mode.generation(kernel);
    const changed = generation === undefined || generation !== this.#generation;
    const idle = !this.#rounds.open && !this.#rounds.urgent && !this.#planChanged && this.#suspicions.all.length === 0;
    if (!changed && idle) return;
    if (changed && !this.#rounds.open) this.#begin(plan);
    const kept = changed ? undefined : this.#reading;
    const reading = kept ?? (await readKernel(this.#parts, generation));
    this.#reading = reading;
    this.#generation = generation;
    if (kept === undefined || this.#planChanged) await this.#findStrays(plan, reading);
    this.#seeStrays();
    await this.#compare(plan, reading);
    if (!this.#rounds.open && this.#suspicions.all.length === 0) this.#reading = undefined;
  }

  async #compare(plan: ForwardingPlan, reading: Reading): Promise<void> {
    const yielding = slices(this.#parts.slicing);
    const suspected = this.#suspicions.all.flatMap(({ subject }) => (subject.service === undefined ? [] : subject.id));
    for (const id of new Set([...this.#rounds.takeUrgent(), ...suspected])) {
      this.#see(plan, reading, id);
      await yielding();
    }
    const until = performance.now() + SHARE_MS;
    while (this.#rounds.open && performance.now() < until) {
      const id = this.#rounds.next();
      if (id === undefined) this.#ended(plan);
      else this.#see(plan, reading, id);
      await yielding();
    }
  }

  #see({ groups, node }: ForwardingPlan, { view, nodeAddress }: Reading, id: string): void {
    const group = groups.get(id);
    // What is left of a service that is gone from the plan is found as a destination that no service has.
    if (group === undefined) this.#report(this.#suspicions.forget(id));
    else
      this.#report(
        this.#suspicions.seen(differenceTarget(group), groupDifferences(group, node, view, nodeAddress), this.#now()),
      );
  }

  async #findStrays(plan: ForwardingPlan, { view }: Reading): Promise<void> {
    this.#planChanged = false;
    const found = new Map<string, DifferenceTarget>();
    for (const destination of await inSlices(straysIn(plan, view.state), this.#parts.slicing)) {
      const name = destinationText(destination);
      found.set(`stray ${name}`, { id: `stray ${name}`, family: this.family, name });
    }
    for (const id of this.#strays.keys()) if (!found.has(id)) this.#report(this.#suspicions.forget(id));
    this.#strays = found;
  }

  #seeStrays(): void {
    for (const subject of this.#strays.values()) {
      this.#report(this.#suspicions.seen(subject, [{ ...STRAY, packet: subject.name }], this.#now()));
    }
  }

  #report(news: DifferenceEvent | undefined): void {
    if (news !== undefined) this.#parts.onNews(news);
  }

  #allChanged({ groups }: ForwardingPlan): void {
    for (const id of groups.keys()) this.#suspicions.changed(id, this.#now());
  }

  #begin({ groups }: ForwardingPlan): void {
    this.#rounds.begin(groups.keys());
    this.#roundBegan = this.#now();
  }

  #ended({ groups }: ForwardingPlan): void {
    const { clock } = this.#parts;
    this.#round = { at: clock.now(), milliseconds: this.#now() - this.#roundBegan, services: groups.size };
  }

  #now(): number {
    return this.#parts.clock.monotonic();
  }
}

function differenceTarget({ id, family, name, service }: ServicePortGroup): DifferenceTarget {
  return { id, family, name, service: splitKey(service) };
}

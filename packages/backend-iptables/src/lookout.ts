import type { Clock } from "@fairlead/base";
import { EACH_TOLD, type Table } from "@fairlead/netfilter";
import type { RulesPort } from "./port.ts";

/** fixed: what is there however many services there are. all: the rules of services in shared chains, too. */
export type Extent = "fixed" | "all";

/** A question to the kernel: how much is there, perhaps more than was asked for; undefined: what must be is not. */
export type Look = (extent: Extent) => Promise<Extent | undefined>;

/** Rules of a table up to which everything is looked at each time. */
const SMALL = 5000;

/**
 * Milliseconds of rest between looks at all services' rules in a large table, for each rule of it: so they take some
 * thousandth of the time, whatever the size.
 */
const REST_PER_RULE = 0.5;

/** What is known of a table as it is. */
interface Seen {
  /** As the kernel told it when looking began; undefined: it tells nothing. */
  readonly state: string | undefined;
  /** That much was there since. */
  extent: Extent | undefined;
}

/**
 * Looks whether what must be in a table is there; not at all where the kernel says that the table is as it was when
 * everything was. What does not depend on services is looked at after each change, by whomever; all of it in a small
 * table at once, in a large one after a rest. A large legacy table is read as a whole by each look: so everything is
 * looked at there, what this proxy writes itself is taken for granted, and as the kernel tells number and size only,
 * it is looked at after a rest also where these are as they were.
 */
export class Lookout {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #glance: NonNullable<RulesPort["glance"]>;
  readonly #seen = new Map<Table, Seen>();
  readonly #restUntil = new Map<Table, number>();

  constructor(clock: Pick<Clock, "monotonic">, glance: RulesPort["glance"] = async () => undefined) {
    this.#clock = clock;
    this.#glance = glance;
  }

  /** @param rules that the table holds */
  async holds(table: Table, rules: number, look: Look): Promise<boolean> {
    const { state, entries } = (await this.#glance(table)) ?? {};
    // A flush, seen without a look.
    if (entries !== undefined && entries < rules) return false;
    const seen = this.#seenAt(table, state);
    const extent = this.#due(table, rules, seen, entries);
    if (extent === undefined) return true;
    seen.extent = await look(extent);
    return seen.extent !== undefined;
  }

  /** All tables are written anew: what was there before says nothing of them. */
  forget(): void {
    this.#seen.clear();
  }

  /**
   * How much of a large legacy table is known to be there, before a change of it is written; undefined: nothing, or of
   * other tables nothing that a look would not tell as well.
   */
  async stands(table: Table, rules: number): Promise<Extent | undefined> {
    const seen = this.#seen.get(table);
    if (rules <= SMALL || seen === undefined) return undefined;
    const { state, entries } = (await this.#glance(table)) ?? {};
    return entries !== undefined && state === seen.state ? seen.extent : undefined;
  }

  /**
   * Something was written, with which so much of a large legacy table is there. Whoever else changes it afterwards is
   * told by the number or size of the rules.
   */
  async wrote(table: Table, rules: number, extent: Extent = "all"): Promise<void> {
    if (rules <= SMALL) return;
    const { state, entries } = (await this.#glance(table)) ?? {};
    if (entries !== undefined) this.#seen.set(table, { state, extent });
  }

  /** Nothing is kept of a table that the kernel tells nothing of. */
  #seenAt(table: Table, state: string | undefined): Seen {
    const known = this.#seen.get(table);
    if (known !== undefined && state !== undefined && known.state === state) return known;
    const seen: Seen = { state, extent: undefined };
    this.#seen.set(table, seen);
    return seen;
  }

  /** What is to be looked at now. */
  #due(table: Table, rules: number, { extent }: Seen, entries: number | undefined): Extent | undefined {
    if (entries !== undefined && entries > EACH_TOLD) {
      return this.#rested(table, rules) || extent !== "all" ? "all" : undefined;
    }
    if (extent === "all") return undefined;
    if (rules <= SMALL || this.#rested(table, rules)) return "all";
    return extent === undefined ? "fixed" : undefined;
  }

  #rested(table: Table, rules: number): boolean {
    const [now, rest] = [this.#clock.monotonic(), rules * REST_PER_RULE];
    const until = this.#restUntil.get(table) ?? now + rest;
    const rested = now >= until;
    this.#restUntil.set(table, rested ? now + rest : until);
    return rested;
  }
}

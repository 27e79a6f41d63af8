import type { Clock } from "@fairlead/base";
import { sameFacts } from "./plan/frame.ts";
import type { FrameFacts } from "./plan/frame-nat.ts";
import { TABLES } from "./plan/frame-nat.ts";
import type { IpvsPort } from "./port.ts";

export interface CheckedState {
  readonly state: string;
  readonly facts: FrameFacts;
  readonly at: number;
}

/**
 * Milliseconds for which a check that found the rules correct is valid: of a large legacy table the kernel reports only
 * the number and size of the rules, and another program may replace one by another.
 */
const LASTS = 600_000;

/**
 * Remembers that all our rules were found, and knows from the kernel, without a process, that no other program has
 * touched their tables since.
 */
export class CheckedRules {
  readonly #rules: IpvsPort["rules"];
  readonly #clock: Pick<Clock, "monotonic">;
  #seen: CheckedState | undefined;

  constructor(rules: IpvsPort["rules"], clock: Pick<Clock, "monotonic">) {
    this.#rules = rules;
    this.#clock = clock;
  }

  /** What the kernel says of the tables now; undefined: it says nothing. To be asked before the rules are read. */
  async state(): Promise<string | undefined> {
    const states: string[] = [];
    for (const table of TABLES) {
      const glance = await this.#rules.glance?.(table);
      if (glance === undefined) return undefined;
      states.push(glance.state);
    }
    return states.join(", ");
  }

  /** The rules that these facts ask for were found after the kernel said so. */
  note(state: string | undefined, facts: FrameFacts): void {
    this.#seen = state === undefined ? undefined : { state, facts, at: this.#clock.monotonic() };
  }

  /** Something of ours may have been written half. */
  forget(): void {
    this.#seen = undefined;
  }

  /** Whether they are there still. */
  async stand(facts: FrameFacts): Promise<boolean> {
    const seen = this.#seen;
    if (seen === undefined || this.#clock.monotonic() - seen.at > LASTS || !sameFacts(seen.facts, facts)) return false;
    return (await this.state()) === seen.state;
  }
}

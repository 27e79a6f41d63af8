import type { Clock } from "@fairlead/base";
import type { Difference, IPFamily } from "@fairlead/core";
import type { Log } from "../log.ts";
import { backoffDelay } from "./backoff.ts";

/** Milliseconds for which no further line is logged where rules are changed again and again. */
const QUIET_MS = 10_000;
/** Milliseconds until rules are written again that did not become what was written, the first time and at most. */
const BACKOFF = { first: 60_000, most: 3_600_000 } as const;
/** Parts of a difference that a line names. */
const MOST_NAMED = 5;

interface OpenDifference {
  readonly text: string;
  /** How often writing did not help. */
  readonly inVain: number;
  /** It is being written; else that waits until then, on the monotonic clock. */
  readonly waitsUntil?: number;
}

/**
 * What checks found, by family. A check follows each writing: where it finds the same again and no other program is
 * known to have changed the rules, writing did not help, and is tried again later and later.
 */
export class Differences {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #log: Log;
  readonly #found = new Map<IPFamily, OpenDifference>();
  readonly #quietUntil = new Map<IPFamily, number>();

  constructor(clock: Pick<Clock, "monotonic">, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  none(family: IPFamily): void {
    this.#found.delete(family);
  }

  /** @returns whether it is to be written again now */
  found(family: IPFamily, difference: Difference): boolean {
    const text = differenceText(difference);
    const before = this.#found.get(family);
    const now = this.#clock.monotonic();
    // Another program that is named changed the rules after the writing, which helped until then.
    const isChangedAgain = (difference.by ?? []).length > 0;
    if (difference.repaired || before?.text !== text || isChangedAgain) {
      this.#report(family, difference);
      if (difference.repaired) this.none(family);
      else this.#found.set(family, { text, inVain: 0 });
      return !difference.repaired;
    }
    if (before.waitsUntil === undefined) this.#wait(family, before);
    else if (now >= before.waitsUntil) {
      this.#found.set(family, { text, inVain: before.inVain });
      return true;
    }
    return false;
  }

  #wait(family: IPFamily, { text, inVain }: OpenDifference): void {
    const delay = backoffDelay(inVain + 1, BACKOFF, 1);
    this.#found.set(family, { text, inVain: inVain + 1, waitsUntil: this.#clock.monotonic() + delay });
    this.#log.error(
      "Rules still differ from the desired state after a full sync; services may be unavailable, retrying",
      {
        ipFamily: family,
        differs: text,
        retryIn: `${delay}ms`,
      },
    );
  }

  #report(family: IPFamily, difference: Difference): void {
    const now = this.#clock.monotonic();
    const isQuiet = now < (this.#quietUntil.get(family) ?? 0);
    this.#quietUntil.set(family, now + QUIET_MS);
    if (isQuiet) return;
    const { by = [], repaired } = difference;
    this.#log.warn(
      repaired
        ? "Rules differed from the desired state; the differences are repaired"
        : "Rules differ from the desired state; full sync scheduled",
      { ipFamily: family, differs: differenceText(difference), ...(by.length > 0 && { by: by.join(", ") }) },
    );
  }
}

function differenceText({ what }: Difference): string {
  const more = what.length > MOST_NAMED ? [`${what.length - MOST_NAMED} more`] : [];
  return [...what.slice(0, MOST_NAMED), ...more].join("; ");
}

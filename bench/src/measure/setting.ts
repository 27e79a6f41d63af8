import type { Bed } from "../cluster/bed.ts";
import type { Size } from "../cluster/objects.ts";
import type { StartSettings } from "../proxy/running.ts";
import type { RuleDigests, RulesReader } from "./rules.ts";
import type { Counts } from "./work.ts";

/** What all runs of a benchmark have in common. */
export interface Setting {
  readonly bed: Bed;
  readonly size: Size;
  readonly counts: Counts;
  readonly startSettings: Omit<StartSettings, "subject">;
  /** Milliseconds after a first sync in which nothing changes. Default 30,000; a start's CPU is not taken with less. */
  readonly restMs?: number;
  readonly readRules: RulesReader;
  /** The rules of a fresh start on the objects as they are after this step. */
  readonly freshRules: (step: string) => Promise<RuleDigests>;
}

import type { IPFamily } from "@fairlead/core";
import type { ServiceReport } from "@fairlead/verify";

/** What was found in one family. */
export interface FamilyReport {
  readonly family: IPFamily;
  readonly services: readonly ServiceReport[];
}

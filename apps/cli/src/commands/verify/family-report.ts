import type { IPFamily } from "@fairlead/core";
import type { Finding, ServiceReport } from "@fairlead/verify";

/** What was found in one family. */
export interface FamilyReport {
  readonly family: IPFamily;
  readonly services: readonly ServiceReport[];
  /** What others' rules do, and no difference; absent: nothing that is known. */
  readonly notes?: readonly Finding[];
}

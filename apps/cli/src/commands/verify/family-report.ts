import type { IPFamily } from "@fairlead/core";
import type { Finding, ServiceReport } from "@fairlead/inspect";

/** What was found in one family. */
export interface FamilyReport {
  readonly family: IPFamily;
  /** How many services the plan has. */
  readonly planned: number;
  readonly services: readonly ServiceReport[];
  /** What others' rules do, and no difference; absent: nothing that is known. */
  readonly notes?: readonly Finding[];
  /** What is worth knowing of the fast path, and no difference; absent: nothing. */
  readonly fastPath?: string;
  /** Packets of which it is not known where they end; absent: there are none. */
  readonly unknown?: readonly Finding[];
}

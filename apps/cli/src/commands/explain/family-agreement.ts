import type { IPFamily } from "@fairlead/core";
import type { Agreement } from "@fairlead/inspect";

/** How the kernel agrees with the plan in one family. */
export interface FamilyAgreement {
  readonly family: IPFamily;
  readonly agreement: Agreement;
}

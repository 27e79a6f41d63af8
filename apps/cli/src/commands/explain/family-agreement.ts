import type { Agreement } from "@fairlead/compare";
import type { IPFamily } from "@fairlead/core";

/** How the kernel agrees with the plan in one family. */
export interface FamilyAgreement {
  readonly family: IPFamily;
  readonly agreement: Agreement;
}

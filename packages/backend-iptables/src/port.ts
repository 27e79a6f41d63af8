import type { IptablesPort } from "@fairlead/netfilter";

/** What this backend asks of the kernel, for one IP family. */
export type RulesPort = Omit<IptablesPort, "saveTables">;

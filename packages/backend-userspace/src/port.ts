import type { IptablesPort } from "@fairlead/netfilter";

/** What this backend asks of the kernel's iptables, for one IP family. */
export type RulesPort = Pick<IptablesPort, "family" | "variant" | "restore" | "chains" | "list" | "texts" | "glance">;

import { iptablesSemantics } from "@fairlead/backend-iptables";
import { ipvsSemantics } from "@fairlead/backend-ipvs";
import type { ModeSemantics } from "@fairlead/core";

/** The modes that plans can be made for. */
export const MODES = ["iptables", "ipvs"] as const;

export type Mode = (typeof MODES)[number];

export const SEMANTICS: Readonly<Record<Mode, ModeSemantics>> = { iptables: iptablesSemantics, ipvs: ipvsSemantics };

import type { ModeFacts } from "@fairlead/core";
import { iptables } from "./iptables.ts";
import { ipvs } from "./ipvs.ts";
import type { InspectedMode } from "./mode.ts";
import { nftables } from "./nftables.ts";

const modes = [iptables, ipvs, nftables] as const satisfies readonly InspectedMode[];

/** The name of a mode that plans can be made for. */
export type Mode = (typeof modes)[number]["facts"]["name"];

/** The modes that plans can be made for. */
export const MODES: readonly Mode[] = modes.map(({ facts }) => facts.name);

export function modeOf(name: Mode): InspectedMode {
  const found = modes.find(({ facts }) => facts.name === name);
  if (found === undefined) throw new RangeError(`mode ${name}: use ${MODES.join(" or ")}`);
  return found;
}

/** What holds for a mode on every node. */
export function factsOf(name: Mode): ModeFacts {
  return modeOf(name).facts;
}

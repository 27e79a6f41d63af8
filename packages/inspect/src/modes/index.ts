import type { ModeFacts } from "@fairlead/core";
import { iptables } from "./iptables.ts";
import { ipvs } from "./ipvs.ts";
import { kernelspace } from "./kernelspace.ts";
import type { DryRunSettings, InspectedMode } from "./mode.ts";
import { nftables } from "./nftables.ts";

const modes = [iptables, ipvs, nftables, kernelspace] as const satisfies readonly InspectedMode[];

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

/** Why what a mode programs cannot be read, nor packets be followed through it; undefined: they can. */
export function whyUnread(name: Mode): string | undefined {
  return modeOf(name).unread;
}

/** Why what a mode writes with a configuration cannot be said; undefined: `dryRun` does. */
export function whyUnwritten(name: Mode, settings: DryRunSettings): string | undefined {
  return modeOf(name).unwritten?.(settings);
}

/** What becomes of packets that the plan refuses or drops, where a mode has no rule for it. */
export function unservedIn(name: Mode): string | undefined {
  return modeOf(name).unserved;
}

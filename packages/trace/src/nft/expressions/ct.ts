import { CT_DIRECTIONS, CT_STATES, CT_STATUSES, hexOf } from "@fairlead/netfilter/nft";
import { isDNATed } from "../../conntrack.ts";
import type { Walk } from "../../walk.ts";
import { BREAK } from "../rule-context.ts";
import type { Evaluate } from "./kind.ts";

/** No register holds more bytes. */
const LONGEST = 16;
const BYTES = { direction: 1, mark: 4 } as const;

export const ct: Evaluate<"ct"> = (expression, { walk, registers }) => {
  // What has a mark set is not followed: whoever asks for it later finds it unknown.
  if ("from" in expression) return undefined;
  const { key, direction, to } = expression;
  const state = connectionState(walk);
  if (direction !== undefined) {
    if (state === "INVALID" || state === "UNTRACKED") return BREAK;
    registers.loadUnknown(to, LONGEST, `the tracer does not know "ct ${direction} ${key}" of the connection`);
    return undefined;
  }
  if (key === "state") {
    registers.loadNumber(to, CT_STATES[state.toLowerCase()] ?? 0);
    return undefined;
  }
  // Without an entry there is no status (nft_ct_get_eval).
  if (state === "INVALID" || state === "UNTRACKED") return BREAK;
  if (key === "status") registers.loadNumber(to, statusOf(walk));
  else if (key === "direction" && state === "NEW") registers.load(to, ORIGINAL);
  else if (key === "direction" || key === "mark") {
    registers.loadUnknown(to, BYTES[key], `the connection's ${key} is not known`);
  }
  return undefined;
};

/** The first packet comes from the one that begins the connection. */
const ORIGINAL = hexOf([CT_DIRECTIONS.original]);

/** Before connection tracking a packet has no entry, but for one that the host sent to itself. */
export function connectionState({ state, stage, looped }: Walk): Walk["state"] {
  return stage?.tracked === false && !looped ? "INVALID" : state;
}

/** Whether it is assured depends on all packets of the connection: taken as not. */
function statusOf(walk: Walk): number {
  const known = walk.state !== "NEW" || walk.looped;
  const bits = [
    ...(known ? ["confirmed"] : []),
    ...(walk.state === "ESTABLISHED" ? ["seen-reply"] : []),
    ...(walk.state === "RELATED" ? ["expected"] : []),
    ...(walk.masqueraded ? ["snat"] : []),
    ...(isDNATed(walk) ? ["dnat"] : []),
  ];
  return bits.reduce((sum, name) => sum | (CT_STATUSES[name] ?? 0), 0);
}

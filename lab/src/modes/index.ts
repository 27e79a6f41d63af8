import { iptablesMode } from "./iptables.ts";
import { ipvsMode } from "./ipvs.ts";
import type { Mode } from "./mode.ts";
import { nftablesMode } from "./nftables.ts";
import { userspaceMode } from "./userspace.ts";

/** The modes that the test ground knows. */
export const modes: readonly Mode[] = [iptablesMode, ipvsMode, nftablesMode, userspaceMode];

/** @throws Error that names those that there are */
export function modeNamed(wanted: string): Mode {
  const found = modes.find(({ name }) => name === wanted);
  if (found !== undefined) return found;
  throw new Error(`no mode ${wanted}; there are ${modes.map(({ name }) => name).join(", ")}`);
}

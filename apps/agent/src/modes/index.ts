import { iptablesMode } from "./iptables.ts";
import { ipvsMode } from "./ipvs.ts";
import type { Mode } from "./mode.ts";
import { nftablesMode } from "./nftables.ts";
import { userspaceMode } from "./userspace.ts";

/**
 * The modes that this agent serves in. What they left is removed in this order: iptables mode's chains last, since
 * those of the others refer to some that it has as well.
 */
export const modes: readonly Mode[] = [nftablesMode, ipvsMode, userspaceMode, iptablesMode];

import type { Report } from "../report.ts";
import type { ConfigInput } from "../resolve/input.ts";
import type { ProxyMode } from "../types.ts";

/** Why a mode has no use for it; absent: it has. */
const USELESS: Partial<Readonly<Record<ProxyMode, string>>> = {
  userspace: "the agent itself terminates the connections",
};

export function resolveResetStaleTCP({ fairlead }: ConfigInput, mode: ProxyMode, report: Report): boolean {
  const asked = fairlead.resetStaleTCP ?? false;
  const why = USELESS[mode];
  if (asked && why !== undefined) {
    report.error("resetStaleTCP", `works in iptables, nftables and ipvs mode; in ${mode} mode ${why}`);
  }
  return asked;
}

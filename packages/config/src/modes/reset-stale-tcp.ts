import type { Report } from "../report.ts";
import type { ConfigInput } from "../resolve/input.ts";
import type { ProxyMode } from "../types.ts";

/** Why deleting conntrack entries resets nobody in a mode; absent: it does. */
const USELESS: Partial<Readonly<Record<ProxyMode, string>>> = {
  ipvs: "IPVS remembers connections in a table of its own",
  userspace: "connections end in the agent",
};

export function resolveResetStaleTCP({ fairlead }: ConfigInput, mode: ProxyMode, report: Report): boolean {
  const asked = fairlead.resetStaleTCP ?? false;
  const why = USELESS[mode];
  if (asked && why !== undefined) {
    report.error("resetStaleTCP", `works in iptables and nftables mode; in ${mode} mode ${why}`);
  }
  return asked;
}

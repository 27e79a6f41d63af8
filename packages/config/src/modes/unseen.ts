import type { ProxyMode } from "../types.ts";

/** Why it cannot be seen in the kernel where a mode sends packets; undefined: it can. */
export function whyUnseen(mode: ProxyMode): string | undefined {
  if (mode !== "userspace") return undefined;
  return "compares iptables, ipvs and nftables mode; userspace mode has no rules that say where packets go";
}

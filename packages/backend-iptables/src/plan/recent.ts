import type { IPFamily } from "@fairlead/core";
import type { Match } from "@fairlead/netfilter";

type Recent = Extract<Match, { kind: "recent" }>;

/** The list of clients that an endpoint's chain remembers for session affinity; each client on its own. */
export function recent(name: string, family: IPFamily): Omit<Recent, "op"> {
  const mask = family === "IPv6" ? "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" : "255.255.255.255";
  return { kind: "recent", name, mask, side: "rsource" };
}

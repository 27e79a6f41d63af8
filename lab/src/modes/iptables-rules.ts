import type { ModeRules } from "./mode.ts";

/** Of the modes that serve by rules of iptables. */
export const iptablesRules: ModeRules = {
  listings: [["iptables-save"], ["ip6tables-save"]],
  linesOf: (listing) => listing.split("\n").filter((line) => line.startsWith("-A ")),
  canonical: true,
  version: ["iptables", "--version"],
  look: "iptables -t nat -L -vn",
};

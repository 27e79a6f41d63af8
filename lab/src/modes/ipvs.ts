import { hasIpvs } from "../support/machine.ts";
import { iptablesRules } from "./iptables-rules.ts";
import type { Mode } from "./mode.ts";

export const ipvsMode: Mode = {
  name: "ipvs",
  flags: [],
  kernelHas: hasIpvs,
  keepsSource: true,
  emptyInternalLocal: "refused",
  // They lead to endpoints elsewhere, whose answers pass them by unless the pod network masquerades.
  dropsExternalLocal: false,
  nodePorts: "all",
  // Its address is not the node's anymore, and only what is for the node meets IPVS.
  keepsLeft: false,
  repairMs: 30_000,
  rules: {
    listings: [...iptablesRules.listings, ["ipvsadm", "-Sn"]],
    linesOf: iptablesRules.linesOf,
    canonical: true,
    version: ["ipvsadm", "--version"],
    look: "ipvsadm -ln",
  },
};

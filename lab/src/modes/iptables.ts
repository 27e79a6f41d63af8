import { iptablesByHand } from "../faults/iptables.ts";
import { iptablesRules } from "./iptables-rules.ts";
import { everyKernel, type Mode } from "./mode.ts";

export const iptablesMode: Mode = {
  name: "iptables",
  flags: [],
  kernelHas: everyKernel,
  keepsSource: true,
  emptyInternalLocal: "lost",
  dropsExternalLocal: true,
  nodePorts: "all, and 127.0.0.1",
  keepsLeft: true,
  byHand: iptablesByHand,
  repairMs: 5_000,
  rules: iptablesRules,
};

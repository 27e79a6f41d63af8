import { iptablesRules } from "./iptables-rules.ts";
import { everyKernel, type Mode } from "./mode.ts";

export const userspaceMode: Mode = {
  name: "userspace",
  // On a busy machine an answer may take longer than the 250 ms after which a relay forgets who asked.
  flags: ["--udp-timeout=10s"],
  kernelHas: everyKernel,
  // The relay asks for everybody.
  keepsSource: false,
  emptyInternalLocal: "lost",
  dropsExternalLocal: true,
  nodePorts: "all, and 127.0.0.1",
  keepsLeft: true,
  repairMs: 5_000,
  rules: iptablesRules,
};

import { flag, text } from "../../frame/options.ts";
import { clusterOptions } from "../../inputs/cluster-options.ts";
import { outputOption } from "../../output/output.ts";

export const verifyOptions = {
  ...clusterOptions,
  rules: text("FILE", "What iptables-save printed, in place of this host's kernel; IPv4 alone, iptables mode.", {
    completes: "path",
  }),
  repair: flag("Ask the agent of this host for a full sync where anything differs, and look again."),
  output: outputOption,
} as const;

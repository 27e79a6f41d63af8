import { flag, text } from "../../frame/options.ts";
import { clusterOptions, namespaceOption } from "../../inputs/cluster-options.ts";
import { kernelOptions, sysdumpOption } from "../../inputs/node-options.ts";
import { outputOption } from "../../output/output.ts";

export const verifyOptions = {
  ...clusterOptions,
  namespace: namespaceOption,
  ...kernelOptions,
  sysdump: sysdumpOption,
  "all-nodes": flag("Verify every node of the cluster, by programs that are started in their agents' pods."),
  repair: flag("If anything differs, ask the agent of this host, or of --on, for a full sync, and verify again."),
  watch: flag(
    "Compare by the fate of packets, all the time, and change nothing: lines, Events, metrics and a page report differences.",
  ),
  "grace-period": text("TIME", "With --watch: how long a difference must last to be reported.", {
    defaultText: "the larger of 5s and 3 × minSyncPeriod",
  }),
  output: outputOption,
} as const;

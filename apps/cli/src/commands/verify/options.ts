import { flag } from "../../frame/options.ts";
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
  output: outputOption,
} as const;

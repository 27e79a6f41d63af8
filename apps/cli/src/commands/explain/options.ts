import { clusterOptions, namespaceOption, toModeOption } from "../../inputs/cluster-options.ts";
import { kernelOptions, sysdumpOption } from "../../inputs/node-options.ts";
import { outputOption } from "../../output/output.ts";

export const explainOptions = {
  ...clusterOptions,
  namespace: namespaceOption,
  ...kernelOptions,
  sysdump: sysdumpOption,
  "to-mode": toModeOption("Explain the service as it will be in that mode, and what changes for its clients."),
  output: outputOption,
} as const;

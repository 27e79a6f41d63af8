import { clusterOptions, namespaceOption } from "../../inputs/cluster-options.ts";
import { kernelOptions } from "../../inputs/node-options.ts";
import { outputOption } from "../../output/output.ts";

export const explainOptions = {
  ...clusterOptions,
  namespace: namespaceOption,
  ...kernelOptions,
  output: outputOption,
} as const;

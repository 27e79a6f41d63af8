import { agentOptions, sourceOptions } from "../../../inputs/cluster-options.ts";
import { kernelOptions } from "../../../inputs/node-options.ts";

const { mode, config, "cluster-cidr": clusterCIDR, "agent-flag": flag, "node-address": address } = agentOptions;

/** What a report on another mode can be made from in the place of a cluster, and whose kernel it looks at. */
export const reportOptions = {
  file: sourceOptions.file,
  node: sourceOptions.node,
  mode,
  config,
  "cluster-cidr": clusterCIDR,
  "agent-flag": flag,
  "node-address": address,
  ...kernelOptions,
} as const;

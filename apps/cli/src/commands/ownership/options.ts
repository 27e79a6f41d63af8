import { flag, text } from "../../frame/options.ts";
import { clusterOptions, onlyNamespaceOption } from "../../inputs/cluster-options.ts";
import { metricsPortOption } from "../../inputs/node-options.ts";
import { outputOption } from "../../output/output.ts";

export const ownershipOptions = {
  ...clusterOptions,
  namespace: onlyNamespaceOption,
  watch: flag("Print every change that follows, until interrupted.", { short: "w" }),
  live: flag("Ask the running agent of this node instead of planning."),
  on: text("NODE", "Ask the running agent of that node, through the API server (pods/portforward)."),
  accept: flag("Says where consent is given: the ConfigMap fairlead-networks."),
  "metrics-port": metricsPortOption,
  output: outputOption,
} as const;

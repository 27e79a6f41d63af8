import { flag, text } from "../../frame/options.ts";
import { clusterOptions, namespaceOption } from "../../inputs/cluster-options.ts";
import { kernelOptions, metricsPortsOption } from "../../inputs/node-options.ts";
import { listOption } from "../../output/output.ts";

export const statusOptions = {
  ...clusterOptions,
  namespace: namespaceOption,
  on: kernelOptions.on,
  live: flag("Ask the agent of this host only; needs no cluster."),
  verify: flag("Also compare each node's kernel with what it should have."),
  "metrics-port": metricsPortsOption,
  "health-port": text("PORT", "The port of the agents' healthzBindAddress.", {
    defaultText: "10256, with --service-proxy-name 10356",
  }),
  watch: flag("Ask again every 5 s and print each row that changed, until interrupted.", { short: "w" }),
  output: listOption,
} as const;

import { flag, text } from "../../frame/options.ts";
import { clusterOptions } from "../../inputs/cluster-options.ts";
import { metricsPortsOption } from "../../inputs/node-options.ts";

export const sysdumpOptions = {
  ...clusterOptions,
  on: text("NODE", "Only that node."),
  live: flag("Only this host; its kernel needs root."),
  "output-file": text("FILE", "Where to write the archive.", { defaultText: "fairlead-sysdump-TIME.tar.gz" }),
  "node-timeout": text("SECONDS", "How long a node may take to answer.", { defaultText: "5" }),
  "metrics-port": metricsPortsOption,
  "health-port": text("PORT", "The port of the agents' healthzBindAddress.", {
    defaultText: "10256, with --service-proxy-name 10356",
  }),
} as const;

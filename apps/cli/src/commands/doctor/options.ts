import { list, text } from "../../frame/options.ts";
import { accessOptions, agentOptions, anyModeOption } from "../../inputs/cluster-options.ts";
import { outputOption } from "../../output/output.ts";

export const doctorOptions = {
  mode: anyModeOption,
  config: agentOptions.config,
  "service-proxy-name": agentOptions["service-proxy-name"],
  "cluster-cidr": agentOptions["cluster-cidr"],
  "exclude-cluster-cidr": agentOptions["exclude-cluster-cidr"],
  "agent-flag": agentOptions["agent-flag"],
  "metrics-port": agentOptions["metrics-port"],
  "service-cidr": list("CIDR", "Service CIDRs of the cluster."),
  ...accessOptions,
  on: text("NODE", "Check this node, by programs that are started in its agent's pod."),
  output: outputOption,
} as const;

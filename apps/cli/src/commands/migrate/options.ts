import { flag, list, text } from "../../frame/options.ts";
import { accessOptions, agentOptions, sourceOptions, toModeOption } from "../../inputs/cluster-options.ts";
import { kernelOptions } from "../../inputs/node-options.ts";
import { KUBE_PROXY_DAEMON_SET } from "../../migrate/state.ts";
import { outputOption } from "../../output/output.ts";

const { mode, config, "cluster-cidr": clusterCIDR, "agent-flag": agentFlag, "node-address": address } = agentOptions;

/** What a report on another mode can be made from in the place of a cluster, and whose kernel it looks at. */
export const reportOptions = {
  file: sourceOptions.file,
  node: sourceOptions.node,
  mode,
  config,
  "cluster-cidr": clusterCIDR,
  "agent-flag": agentFlag,
  "node-address": address,
  ...kernelOptions,
} as const;

export const migrateOptions = {
  ...accessOptions,
  "kube-proxy": text("[NAMESPACE/]DAEMONSET", "kube-proxy's DaemonSet.", { defaultText: KUBE_PROXY_DAEMON_SET }),
  image: text("IMAGE", "Fairlead's image. Default: the one of this version."),
  "exclude-cluster-cidr": list("CIDR", "CIDRs of other pod networks that Fairlead does not serve."),
  "api-server": text("URL", "The API server's own address. Default: the one of kube-proxy's kubeconfig."),
  "output-dir": text("FOLDER", "Write the manifests to this folder, a file for each object.", { completes: "path" }),
  "to-mode": toModeOption(
    "Report what changes for clients in that mode; with --apply give nodes Fairlead in that mode.",
  ),
  apply: flag("Migrate, node by node; continues where an earlier run ended."),
  revert: flag("Go back to kube-proxy, node by node, and remove Fairlead."),
  "skip-verify": flag("Change nodes without verifying their kernels."),
  hold: text("SECONDS", "How long a node must stay healthy before the next one is changed.", { defaultText: "10" }),
  timeout: text("SECONDS", "How long a node may take to be served by the other proxy.", { defaultText: "180" }),
  ...reportOptions,
  output: outputOption,
} as const;

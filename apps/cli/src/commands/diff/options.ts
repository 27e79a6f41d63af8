import { choice, flag, text } from "../../frame/options.ts";
import { accessOptions, agentOptions, sourceOptions, toModeOption } from "../../inputs/cluster-options.ts";
import { outputOption } from "../../output/output.ts";

export const diffOptions = {
  ...accessOptions,
  node: sourceOptions.node,
  namespace: text(
    "NAME",
    "Only services of that namespace; where A and B are manifests or the cluster. Default: all.",
    {
      short: "n",
    },
  ),
  ...agentOptions,
  "to-mode": toModeOption("The mode that B is planned in. Default: the one of A."),
  on: text(
    "NODE",
    "The node that the word node means: its kernel, read by programs in its agent's pod. Default: this one.",
  ),
  family: choice(["ipv4", "ipv6"], "ipv4", "The IP family that is compared."),
  "traffic-only": flag("Compare only traffic, not rules."),
  output: outputOption,
} as const;

import { flag, text } from "../../frame/options.ts";
import { clusterOptions, namespaceOption } from "../../inputs/cluster-options.ts";
import { listOption } from "../../output/output.ts";

export const ownershipOptions = {
  ...clusterOptions,
  namespace: namespaceOption,
  watch: flag("Print every change that follows, until interrupted.", { short: "w" }),
  live: flag("Ask the running agent of this node instead of planning."),
  on: text("NODE", "Ask the running agent of that node, through the API server (pods/portforward)."),
  accept: text(
    "CIDR",
    "Let held CIDRs within this CIDR take effect, on all nodes. First shows which services get another owner. in-effect: those that running agents, " +
      "also of versions before, let take effect.",
    {
      withoutValue:
        "agents take no consent of their own anymore: fairlead ownership --config FILE --accept CIDR --yes writes it for all nodes; " +
        "--accept in-effect accepts what running agents let take effect",
    },
  ),
  forget: text("CIDR", "Forget what agents keep of this CIDR and no object defines anymore, on all nodes."),
  why: text("TEXT", "With --accept: the reason, which is written to the ConfigMap."),
  yes: flag("With --accept, --forget: write the ConfigMap fairlead-networks. Without it, only show what would change."),
  output: listOption,
} as const;

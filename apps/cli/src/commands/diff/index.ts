import { defineCommand } from "../../frame/command.ts";
import { diffOptions } from "./options.ts";

export const diffCommand = defineCommand(
  {
    name: "diff",
    summary: "Compare two rule sets, plans, clusters or nodes: which traffic changes, then which rules",
    description:
      "A and B are each one of: a file with the output of iptables-save or fairlead plan; manifests, as a file or a folder, which are\n" +
      "planned; the word cluster, for the plan of the cluster's objects; the word node, for the kernel of this node or that of --on.\n" +
      "For every address and port that one of them mentions, and every class of senders that one of them distinguishes, a packet is\n" +
      "traced through both. If one side is a plan, only chains whose names begin with KUBE- and its own nftables tables are compared.",
    arguments: [
      { name: "A", help: "What to compare with.", completes: "path" },
      { name: "B", help: "What to compare.", completes: "path" },
    ],
    options: diffOptions,
    examples: [
      { line: "fairlead diff before.txt after.txt", what: "Compare two outputs of iptables-save" },
      {
        line: "fairlead diff cluster node --on node-a",
        what: "Does node-a match the cluster's objects?",
      },
      {
        line: "fairlead diff ./services/ ./services-next/ --node node-a --cluster-cidr 10.144.0.0/16 --traffic-only",
        what: "What would this change of manifests mean for packets?",
      },
      {
        line: "fairlead diff cluster cluster --to-mode nftables --traffic-only --cluster-cidr 10.144.0.0/16",
        what: "What would another mode mean for packets?",
      },
    ],
    finding: "traffic or rules differ",
  },
  () => import("./run.ts"),
);
